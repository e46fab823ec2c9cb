"""A description of the machine without anything that identifies it."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("hedgerow", "numpy", "scipy", "numba", "jax")


def _first_value(path: str, key: str) -> str:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(key)), "")


def describe() -> dict[str, Any]:
    """Processor, cores, memory and versions; no host name, no paths, no user."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    memory_kb = _first_value("/proc/meminfo", "MemTotal").split()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "processor": _first_value("/proc/cpuinfo", "model name")
        or platform.processor()
        or platform.machine(),
        "cores": cores,
        "memory_gb": round(int(memory_kb[0]) / 2**20, 1) if memory_kb else None,
        "system": platform.system(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,  # before anything ran
        "versions": versions,
    }
