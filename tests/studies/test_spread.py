"""Studies over a cluster give what one process gives."""

import pytest

import hedgerow as hr
from hedgerow.errors import ClusterError, SettingError
from hedgerow_studies.work import each, jobs_of, processors

distributed = pytest.importorskip("distributed", reason="a cluster needs Dask: hedgerow[cluster]")


@pytest.fixture(scope="module")
def cluster():
    here = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**here) as local, distributed.Client(local, set_as_default=False) as client:
        yield hr.connect(client)


def test_items_are_shared_out_between_workers(cluster):
    items = [(number, 3) for number in range(20)]
    assert processors(cluster) is cluster
    assert sorted(each(items, pow, jobs=cluster)) == sorted(each(items, pow, jobs=1))


def test_what_a_function_raises_is_raised(cluster):
    with pytest.raises(ZeroDivisionError):
        list(each([(1, 0)], divmod, jobs=cluster))


def test_jobs_are_a_number_or_an_address():
    assert jobs_of("3") == 3
    with pytest.raises(SettingError, match="no address of a scheduler"):
        jobs_of("three")
    with pytest.raises(ClusterError, match="needs keys"):
        jobs_of("tls://127.0.0.1:9")
