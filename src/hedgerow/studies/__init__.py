"""The paper's simulations and application as data and claims: `reproduce(out)` runs them all.

Nothing here is confidential: the samples are simulated and the fatigue data are published.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hedgerow.studies.paper import SEED, Reproduced, reproduce

__all__ = ["SEED", "Reproduced", "reproduce"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from hedgerow.studies import paper

        return getattr(paper, name)
    raise AttributeError(f"module 'hedgerow.studies' has no attribute '{name}'")
