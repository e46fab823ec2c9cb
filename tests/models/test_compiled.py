"""Compiled code on disk: read by the next process, with nothing of a table in it, never taken from others."""

import jax
import numpy as np
import pytest

import hedgerow as hr
from hedgerow.models.families.definition import FamilyDefinition, Numbers
from hedgerow.models.families.family import Family
from hedgerow.models.families.program import FamilyProgram
from hedgerow.models.programs import compiled, potential
from hedgerow.models.programs.compiled import Keeper
from hedgerow.models.programs.potential import x64
from hedgerow.tables import design as designs
from hedgerow.tables.table import Table


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv(compiled.VARIABLE, str(tmp_path / "kept"))
    return tmp_path / "kept"


def twice(values):
    return 2 * values


def untraceable(values):
    raise AssertionError("compiled again")


def call(function, *, size=3, description="double"):
    with x64(True):
        return np.asarray(Keeper(description).keep("it", function)(np.arange(float(size))))


def test_code_is_read_where_it_was_written(home):
    np.testing.assert_array_equal(call(twice), [0, 2, 4])
    np.testing.assert_array_equal(call(untraceable), [0, 2, 4])
    assert len(list(home.glob("*"))) == 1
    for other in ({"size": 4}, {"description": "another"}):
        with pytest.raises(AssertionError):
            call(untraceable, **other)


def test_damaged_code_is_compiled_again(home):
    call(twice)
    (file,) = home.glob("*")
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    np.testing.assert_array_equal(call(twice), [0, 2, 4])
    np.testing.assert_array_equal(call(untraceable), [0, 2, 4])


def test_code_that_calls_a_library_is_not_kept(home):
    """LAPACK is loaded by lowering, and a process that reads its code lowers nothing: it would crash."""
    with x64(True):
        Keeper("root").keep("it", jax.numpy.linalg.cholesky)(np.eye(2))
    assert list(home.glob("*")) == []


def test_a_folder_that_others_may_write_to_is_left_alone(home):
    home.mkdir()
    home.chmod(0o777)
    call(twice)
    assert list(home.glob("*")) == []


@pytest.mark.parametrize("place", ["off", "/proc/nowhere"])
def test_everything_works_without_a_folder(place, monkeypatch):
    monkeypatch.setenv(compiled.VARIABLE, place)
    assert compiled.folder() is None
    np.testing.assert_array_equal(call(twice), [0, 2, 4])


def test_the_folder_stays_small(home, monkeypatch):
    call(twice, size=1)
    (file,) = home.glob("*")
    monkeypatch.setattr(compiled, "_LARGEST", 2.5 * file.stat().st_size)
    for size in range(2, 6):
        call(twice, size=size)
    assert len(list(home.glob("*"))) == 2
    call(untraceable, size=5)


def table_of(seed):
    model, data = Family("weibull"), hr.datasets.family("weibull", n=37, seed=seed)
    return model, designs.build("x ~ z", Table.of(data))


@pytest.mark.slow
def test_what_is_kept_of_a_family_holds_nothing_of_its_table(home):
    potential.compiled.cache_clear()
    model, design = table_of(1)
    first = model.potential(design, np.full(37, 0.7)).value_and_grad(np.zeros(3))
    files = {file: file.read_bytes() for file in home.glob("*")}
    assert files
    for content in files.values():
        assert b"weibull" not in content
        for number in (*design.values, *design.matrix[:, 1], 0.7):
            assert np.float64(number).tobytes() not in content
    potential.compiled.cache_clear()
    _, other = table_of(2)
    second = model.potential(other, np.full(37, 0.4)).value_and_grad(np.zeros(3))
    assert {file: file.read_bytes() for file in home.glob("*")} == files  # as much as for the first
    assert first[0] != second[0]
    potential.compiled.cache_clear()


def test_what_users_write_has_no_description():
    """Their functions may hold confidential numbers as constants."""

    def program(X, y=None):
        import numpyro
        from numpyro import distributions as dist

        numpyro.sample("y", dist.Normal(numpyro.sample("level", dist.Normal(0.0, 1.0)), 1.0), obs=y)

    _, design = table_of(1)
    assert hr.Program(program)._traced(design).description is None
    own = FamilyDefinition(
        "own", domain=Numbers, prior=hr.Prior(), response=lambda program, eta: None, simulate=lambda r, z: z
    )
    domain = Numbers(family="own", spiked=False, settings=())
    assert FamilyProgram(own, domain, (), (0.0, 1.0), 1.0, 1.0).description is None
    assert Family("weibull")._traced(design).description is not None
