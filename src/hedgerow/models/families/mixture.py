"""Several lognormals at once: the same slopes, locations of their own."""

from typing import Any

import numpy as np

from hedgerow.errors import SettingError, is_count
from hedgerow.models.families.definition import LOGS, FamilyDefinition, PositiveNumbers
from hedgerow.models.families.normal import LognormalResponse
from hedgerow.models.lazy import dist, jnp, numpyro


def _response(program: Any, eta: Any) -> LognormalResponse:
    size = program.domain.setting("components") or 2
    first = numpyro.sample("location", dist.Normal(*program.level))
    # Gaps that stay away from zero keep the components, and so the chains, in one order.
    gaps = numpyro.sample("gaps", dist.LogNormal(jnp.zeros(size - 1), 1.0).to_event(1))
    places = first + jnp.concatenate([jnp.zeros(1), jnp.cumsum(gaps)])
    # The likelihood of a component on a few equal values has no bound as its spread goes to zero. The prior
    # of its variance, an inverse gamma with the rate of the exact models', falls faster than that rises.
    half = program.residual_df / 2
    variance = dist.InverseGamma(jnp.full(size, 1 + half), half * program.residual**2)
    root = dist.transforms.PowerTransform(0.5)
    sigma = numpyro.sample("sigma", dist.TransformedDistribution(variance, root))
    share = numpyro.sample("share", dist.Dirichlet(jnp.full(size, 2.0)))
    return LognormalResponse(eta[:, None] + places, sigma, jnp.log(share))


def _check_components(name: str, components: Any) -> None:
    if not is_count(components) or not 2 <= components <= 10:
        raise SettingError(
            f"Family '{name}': components must be a whole number from 2 to 10, got "
            f"{components!r}. One component is family='lognormal'."
        )


FAMILIES = (
    FamilyDefinition(
        "lognormal_mixture",
        domain=PositiveNumbers,
        prior=LOGS,
        options=("lower", "upper", "components"),
        checks={"components": _check_components},
        own_level=True,
        response=_response,
        simulate=lambda random, z: np.exp(
            0.8 * z + 2.0 * (random.uniform(size=len(z)) < 0.7) + 0.5 * random.normal(size=len(z))
        ),
    ),
)
