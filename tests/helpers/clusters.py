"""Clusters for tests: one in this process that shows what is sent, one of processes that can be killed."""

import os
import pickle
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hedgerow.cluster import probe

ROOT = Path(__file__).parents[2]
PATHS = os.pathsep.join(str(ROOT / part) for part in ("src", "studies", "tests"))


class Inline:
    """A client that runs orders here, as a worker would get them: by pickle."""

    status = "running"

    class scheduler:  # noqa: N801 - as Dask's attribute
        address = "tcp://127.0.0.1:1"

    def __init__(self, answers=None, scheduled=None):
        self.scheduled = scheduled
        self.answers = answers or {"tcp://127.0.0.1:2": probe.describe_process()}
        self.sent = []

    def nthreads(self):
        return dict.fromkeys(self.answers, 1)

    def run(self, what, on_error):
        return self.answers if what is probe.describe_process else {name: what() for name in self.answers}

    def run_on_scheduler(self, what):
        if isinstance(self.scheduled, Exception):
            raise self.scheduled
        return self.scheduled or what()

    def submit(self, order, numbers, *, key, pure):
        assert not pure
        message = pickle.dumps((order, numbers))
        order, numbers = pickle.loads(message)
        answer = pickle.dumps(order(numbers))
        self.sent.append((key, order, answer))
        return Ready(pickle.loads(answer))

    def cancel(self, futures, force):
        self.cancelled = len(futures)


class Ready:
    def __init__(self, value):
        self.value = value

    def result(self, timeout):
        return self.value

    def release(self):
        self.value = None


@contextmanager
def started(*words, log):
    """A command of Dask, killed at the end."""
    environment = os.environ | {"PYTHONPATH": PATHS, "HEDGEROW_THREADS": "1"}
    with log.open("ab") as out:
        process = subprocess.Popen([sys.executable, "-m", *words], stdout=out, stderr=out, env=environment)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


@contextmanager
def running(log, spill, workers=4):
    """The address of a scheduler, its process, and those of its workers, which no nanny starts again."""
    from distributed import Client

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    worker = ("distributed.cli.dask_worker", address, "--no-nanny", "--nthreads", "1", "--no-dashboard")
    with ExitStack() as stack:
        begin = stack.enter_context
        scheduler = begin(
            started("distributed.cli.dask_scheduler", "--host", address, "--no-dashboard", log=log)
        )
        crew = [begin(started(*worker, "--local-directory", str(spill), log=log)) for _ in range(workers)]
        with Client(address, set_as_default=False, timeout=60) as client:
            client.wait_for_workers(workers, timeout=60)
        yield address, scheduler, crew
