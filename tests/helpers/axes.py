"""Which modules have the axes and types of their signatures checked while the tests run.

Whole rooms, so that a module that is added or moved is checked without anybody thinking of it. Nothing here
may import hedgerow: the hook must be there first.
"""

from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "hedgerow"
ROOMS = ("numerics", "models", "mechanism", "privacy/sensitive.py")
# At the doors wrong types must meet hedgerow's own errors, which name value, bound and remedy.
DOORS = {"models.prior"}
# Decorated functions do not compile to numba's cache, and what JAX traces is no NumPy array.
COMPILED = ("numerics.kernels.", "models.programs.", "models.families.")


def modules():
    """Every module of the rooms, by its name within the package.

    Not the folders' own `__init__`: the hook takes a package's name for everything inside it.
    """
    files = [file for room in ROOMS for file in (PACKAGE / room, *(PACKAGE / room).rglob("*.py"))]
    names = [file.relative_to(PACKAGE).with_suffix("").parts for file in files if file.is_file()]
    return {".".join(parts) for parts in names if parts[-1] != "__init__"}


def checked_modules():
    """The modules to check, by full name."""
    return sorted(f"hedgerow.{name}" for name in modules() - DOORS if not name.startswith(COMPILED))
