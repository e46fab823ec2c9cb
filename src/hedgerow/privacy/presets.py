"""Settings that go together: the paper's, and those whose ε stands up to an audit (docs/honesty.md).

A preset fills in what the caller left out. It never changes what a price means: the guarantee's words come
from the bound that is in force, whoever chose it.
"""

from collections.abc import Collection
from typing import Any

from hedgerow.errors import SettingError, format_value, is_real
from hedgerow.privacy.weights import LinearWeights, PlannedWeights

PRESETS = ("paper", "recommended")


def preset_settings(
    name: str, *, epsilon: Any, given: Collection[str], noisy: bool = False
) -> dict[str, Any]:
    """What the preset says about settings that are not among `given`.

    A caller's own weights, or a standard's, keep the plain default's bound and are corrected for their bias;
    one planned weight for all has none to speak of.
    """
    if name not in PRESETS:
        raise SettingError(f"preset must be one of {', '.join(PRESETS)}, got {format_value(name)}.")
    settings: dict[str, Any]
    if name == "paper":
        settings = {"known": "simulated", "weights": LinearWeights(), "bound": "lipschitz", "draws": 1000}
    elif "weights" in given:
        settings = {"debias": True, "sampling": "stratified"}
    else:
        if not is_real(epsilon) or not 0 < epsilon < float("inf"):
            raise SettingError(
                "preset 'recommended' plans its weight for a target, so that it needs a positive epsilon; "
                f"got {format_value(epsilon)}."
            )
        settings = {"weights": PlannedWeights(), "bound": "renyi", "sampling": "stratified"}
    if noisy:  # whatever it says of weights, noisy statistics have none
        settings = {key: value for key, value in settings.items() if key in ("sampling", "draws")}
    return {key: value for key, value in settings.items() if key not in given}
