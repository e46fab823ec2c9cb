"""Models by name."""

from hedgerow.errors import SettingError
from hedgerow.models.base import Model
from hedgerow.models.prior import Prior
from hedgerow.models.regression import Lognormal, Normal

FAMILIES = {"normal": Normal, "lognormal": Lognormal}


def model_named(family: str | Model, prior: Prior | None) -> Model:
    """The model a family name stands for."""
    if isinstance(family, Model):
        if prior is not None:
            raise SettingError("prior goes with a family name; a model object brings its own prior.")
        return family
    if not isinstance(family, str) or family not in FAMILIES:
        raise SettingError(f"family must be one of {', '.join(FAMILIES)}, got {family!r}.")
    if prior is not None and not isinstance(prior, Prior):
        raise SettingError(f"prior must be a Prior, got {type(prior).__name__}.")
    return FAMILIES[family](prior=prior if prior is not None else Prior())
