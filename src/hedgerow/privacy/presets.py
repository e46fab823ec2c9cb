"""Settings that go together: the paper's, and what the study of weights shows to be best (docs/weights.md).

A preset fills in what the caller left out. It never changes what a price means: the guarantee's words come
from the bound that is in force, whoever chose it.
"""

from collections.abc import Collection
from typing import Any

from hedgerow.errors import SettingError, is_count, is_real
from hedgerow.privacy.bounds import per_copy
from hedgerow.privacy.weights import CapWeights, LinearWeights

PRESETS = ("paper", "recommended")


def preset_settings(name: str, *, epsilon: Any, copies: Any, given: Collection[str]) -> dict[str, Any]:
    """What the preset says about settings that are not among `given`.

    A caller's own weights keep the plain default's bound: linear weights must not end up under a sharper one
    (docs/honesty.md).
    """
    if name not in PRESETS:
        raise SettingError(f"preset must be one of {', '.join(PRESETS)}, got {name!r}.")
    settings: dict[str, Any]
    if name == "paper":
        settings = {"known": "simulated", "weights": LinearWeights(), "bound": "lipschitz", "draws": 1000}
    else:
        settings = {"debias": True, "sampling": "stratified"}
        if "weights" not in given:
            settings |= {"weights": recommended_weights(epsilon, copies), "bound": "oscillation"}
    return {key: value for key, value in settings.items() if key not in given}


def recommended_weights(epsilon: Any, copies: Any = 1) -> CapWeights:
    """A cap on oscillation at the target of one copy, which is public."""
    if not is_real(epsilon) or not 0 < epsilon < float("inf") or not is_count(copies) or copies < 1:
        raise SettingError(
            f"preset 'recommended' ties its weights to the target of one copy, so that it needs a positive "
            f"epsilon and a number of copies; got {epsilon!r} and {copies!r}."
        )
    return CapWeights(per_copy(epsilon, copies), risk="oscillation")
