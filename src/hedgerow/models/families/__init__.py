"""Models by name."""

from dataclasses import replace

from hedgerow.errors import SettingError
from hedgerow.models.base import Model
from hedgerow.models.exact import Lognormal, Normal
from hedgerow.models.families.family import Family
from hedgerow.models.families.kinds import NAMES as FAMILIES
from hedgerow.models.prior import Prior

__all__ = ["FAMILIES", "model_named"]

_EXACT = {"normal": Normal, "lognormal": Lognormal}


def model_named(family: str | Model, prior: Prior | None) -> Model:
    """The model a family name stands for."""
    if isinstance(family, Family) and family.prior is None:
        return replace(family, prior=prior)
    if isinstance(family, Model):
        if prior is not None:
            raise SettingError("prior goes with a family name; a model object brings its own prior.")
        return family
    if not isinstance(family, str) or family not in FAMILIES:
        raise SettingError(f"family must be one of {', '.join(FAMILIES)}, got {family!r}.")
    if prior is not None and not isinstance(prior, Prior):
        raise SettingError(f"prior must be a Prior, got {type(prior).__name__}.")
    if family in _EXACT:
        return _EXACT[family](prior=prior if prior is not None else Prior())
    return Family(family, prior)
