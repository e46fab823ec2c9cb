"""Stand-ins for what a machine with a GPU may lack and a fit of a pandas frame does not call."""

import importlib.util
import sys
import types


class StandIn(types.ModuleType):
    """A module whose names are empty classes: enough to be imported and written into annotations."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, type(name, (), {"__class_getitem__": classmethod(lambda cls, _: cls)}))
        return getattr(self, name)


# A bare machine may have neither; fits of a pandas frame call nothing of them.
if importlib.util.find_spec("jaxtyping") is None:
    sys.modules["jaxtyping"] = StandIn("jaxtyping")
if importlib.util.find_spec("pyarrow") is None and importlib.util.find_spec("pandas") is not None:
    import pandas  # noqa: F401 - before, so that it does without

    for part in ("", ".compute", ".csv", ".ipc", ".parquet", ".dataset"):
        sys.modules[f"pyarrow{part}"] = StandIn(f"pyarrow{part}")
