"""Families by name. In reading order: `definition` (what a family is), then one module for each kind of
outcome (`normal`, `signed`, `positive`, `shares`, `counts`, `classes`, `dirichlet`), `family` (the model they
make), `program` (that model as NumPyro sees it) and `independent` (its draws by rejection).
"""

from dataclasses import replace

from hedgerow.errors import SettingError
from hedgerow.models.base import Model
from hedgerow.models.exact import Lognormal
from hedgerow.models.families import classes, counts, dirichlet, normal, positive, shares, signed
from hedgerow.models.families.definition import family_names, find_definition, register
from hedgerow.models.families.family import Family
from hedgerow.models.prior import Prior

__all__ = ["FAMILIES", "model_named", "on_log_scale"]

for _module in (normal, positive, shares, counts, classes, dirichlet, signed):
    for _definition in _module.FAMILIES:
        register(_definition)

FAMILIES = family_names()


def on_log_scale(model: Model) -> bool:
    """Whether the regression of a family is on the scale of logarithms."""
    model = getattr(model, "base", model)  # of a model on a box
    return isinstance(model, Lognormal) or bool(getattr(model.domain, "log_scale", False))


def model_named(family: str | Model, prior: Prior | None) -> Model:
    """The model a family name stands for."""
    if isinstance(family, str) and (
        find_definition(family).exact_options or find_definition(family).domain.crossed
    ):
        family = Family(family)  # says what has to be declared
    if isinstance(family, Family) and (family.prior is None or prior is None):
        family = replace(family, prior=prior) if family.prior is None else family
        if (cells := family.by_cells) is not None:
            return cells
        closed = family.exact_model
        spiked = closed is not None and closed.name != family.name
        return family if closed is None or spiked or family.sampler != "independent" else closed
    if isinstance(family, Model):
        if prior is not None:
            raise SettingError("prior goes with a family name; a model object brings its own prior.")
        return family
    exact = find_definition(family).exact
    if prior is not None and not isinstance(prior, Prior):
        raise SettingError(f"prior must be a Prior, got {type(prior).__name__}.")
    if exact is not None and not family.startswith("zero_"):
        return exact(prior=prior or Prior())
    return Family(family, prior)
