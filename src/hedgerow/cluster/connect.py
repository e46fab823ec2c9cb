"""The door to a cluster: an existing one by its client or address, or processes of this machine."""

import re
import warnings
from contextlib import ExitStack
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hedgerow.cluster.workers import Cluster
from hedgerow.errors import ClusterError, HedgerowWarning, SettingError, format_value, is_count

if TYPE_CHECKING:
    from distributed import Client

# The processes are the parallelism.
ALONE = dict.fromkeys(("HEDGEROW_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
# A terminal sends Ctrl-C to them too, which they would answer with tracebacks; who started them ends them.
_DEAF = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
_PRIVATE = ("tls", "wss", "inproc")
_LOOPBACK = re.compile(r"127(\.\d{1,3}){3}|localhost|::1")
_INSTALL = "pip install 'hedgerow[cluster]'"


def connect(to: "Client | str | int") -> Cluster:
    """Workers for a release of a table larger than memory, or for a study::

        with hr.connect("tls://scheduler:8786") as cluster:
            hr.make_release(plan, "release", stream=True, workers=cluster)

    Parameters
    ----------
    to
        A client of Dask, the address of a scheduler, or a number of processes on this machine. An address is
        opened with Dask's own settings, those for TLS included. Processes of this machine talk by TLS with
        certificates made for them. A script that starts some needs `if __name__ == "__main__":`.

    Every worker must have the same version of hedgerow and see the folder of the release. A worker that is
    lost changes no digit of the result.
    """
    try:
        import distributed
    except ImportError:
        raise ClusterError(f"A cluster needs Dask. Install it: {_INSTALL}") from None
    if isinstance(to, distributed.Client):
        if to.asynchronous:
            raise SettingError("connect takes a client that waits. Make it without asynchronous=True.")
        _warn_of_listeners(to)
        return Cluster(to)
    if isinstance(to, str):
        return _open(to)
    if is_count(to) and to > 0:
        return _start(int(to))
    raise SettingError(
        f"connect takes a client of Dask, an address such as tls://host:8786 or a number of processes from 1 "
        f"up, got {format_value(to)}."
    )


def _open(address: str) -> Cluster:
    from distributed import Client

    parts = urlsplit(address)
    if parts.scheme not in ("tcp", "tls", "ws", "wss") or not parts.netloc:
        raise SettingError(f"{address!r} is no address of a scheduler. Say it as in tls://host:8786.")
    if parts.scheme in ("tls", "wss"):
        _check_keys(address)
    with ExitStack() as undo:
        try:
            client = Client(address, set_as_default=False, name="hedgerow")
        except OSError:
            raise ClusterError(
                f"No scheduler answers at {address}. Check that it runs, that the address is the one it "
                "prints, and that both sides have the same TLS settings."
            ) from None
        undo.callback(client.close)
        _warn_of_listeners(client)
        return _keep(Cluster(client), undo)


def _check_keys(address: str) -> None:
    """Whether Dask has keys to talk with: without, its client would fail half open."""
    from distributed.security import Security

    try:
        found = Security().get_connection_args("client").get("ssl_context")
    except (OSError, ValueError):  # a file that is absent, or no key
        found = None
    if found is None:
        raise ClusterError(
            f"{address} needs keys. Tell Dask a certificate, its key and a CA file that can be read "
            "(docs/cluster.md): DASK_DISTRIBUTED__COMM__TLS__CA_FILE, …__CLIENT__CERT and …__CLIENT__KEY."
        )


def _start(processes: int) -> Cluster:
    """A scheduler and workers of this machine. Others who are logged in lack the keys to talk to them."""
    import dask
    from distributed import Client, LocalCluster
    from distributed.security import Security

    with ExitStack() as undo:
        scratch = undo.enter_context(TemporaryDirectory(prefix="hedgerow-", ignore_cleanup_errors=True))
        # Dask serves pages about its tasks to whoever asks, keys or not: these have none.
        pages: dict[str, list[str]] = {
            f"distributed.{who}.http.routes": [] for who in ("scheduler", "worker", "nanny")
        }
        undo.enter_context(dask.config.set({**pages, "temporary-directory": scratch}))
        try:
            cluster = LocalCluster(
                n_workers=processes, threads_per_worker=1, processes=True, host="127.0.0.1", env=ALONE,
                dashboard_address="127.0.0.1:0", scheduler_kwargs={"dashboard": False},
                silence_logs="CRITICAL", security=Security.temporary(), preload=[_DEAF],
            )  # fmt: skip
            undo.callback(cluster.close)
            client = Client(cluster, set_as_default=False)
            undo.callback(client.close)
            client.wait_for_workers(processes, timeout=120)
        except ImportError:
            raise ClusterError(f"Workers here need 'cryptography'. Install it: {_INSTALL}") from None
        except (OSError, RuntimeError) as error:
            raise ClusterError(
                f"{processes} workers could not be started here ({type(error).__name__}). Ask for fewer, or "
                "run without."
            ) from None
        return _keep(Cluster(client), undo)


def _keep(made: Cluster, opened: ExitStack) -> Cluster:
    made.opened = opened.pop_all()
    return made


def _warn_of_listeners(client: "Client") -> None:
    parts = urlsplit(str(getattr(client.scheduler, "address", "")))
    if parts.scheme not in _PRIVATE and not _LOOPBACK.fullmatch(parts.hostname or ""):
        warnings.warn(
            f"What is sent to {parts.netloc} is neither encrypted nor signed: seeds, draws and sums of "
            "confidential records. Use tls:// on a network that others share.",
            HedgerowWarning,
            stacklevel=4,
        )
