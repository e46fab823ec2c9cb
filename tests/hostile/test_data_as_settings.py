"""Data where a setting belongs, as beginners pass it: whatever is said, none of it quotes the data."""

import inspect

import pandas as pd
import pytest
from jaxtyping import TypeCheckError

import hedgerow as hr

SECRET = 98765.4321
FRAME = pd.DataFrame({"x": [SECRET, 2.0, 3.0], "z": [1.0, SECRET, 3.0]})
DATA = {
    "frame": FRAME,
    "series": FRAME["x"],
    "array": FRAME["x"].to_numpy(),
    "rows": FRAME.to_dict("records"),
    "nested": {"x": FRAME},
}
DOORS = {
    f"{room}{name}": door
    for room, module in {"": hr, "weights.": hr.weights, "survey.": hr.survey, "utility.": hr.utility,
                         }.items()
    for name in dir(module)
    if not name.startswith("_") and callable(door := getattr(module, name))
    and str(getattr(door, "__module__", "")).startswith("hedgerow")
    and not (isinstance(door, type) and issubclass(door, BaseException))
    and name not in ("watch", "connect")
}  # fmt: skip


def parameters(door):
    given = inspect.signature(door).parameters.values()
    return [each for each in given if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("name", DOORS)
def test_no_door_quotes_data_that_it_was_given_for_a_setting(name, kind, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for wrong in parameters(DOORS[name]):
        needed = {each.name: "x ~ z" for each in parameters(DOORS[name]) if each.default is each.empty}
        said = listen(DOORS[name], needed | {wrong.name: DATA[kind]})
        assert "98765" not in said, f"{name}({wrong.name}=…): {said[:300]}"


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("end", ["range_min", "range_max"])
def test_nor_do_the_limits_of_a_date(end, kind):
    """Which are looked at once the type is right."""
    assert "98765" not in listen(hr.Declared, {"type": "date", end: DATA[kind]})


@pytest.mark.parametrize("kind", DATA)
def test_no_method_of_a_fit_quotes_data(kind, small):
    synth = hr.Synthesizer("x ~ z", draws=100, seed=1).fit(small[["x", "z"]])
    for name in ("analyses", "attack", "audit", "intervals", "propensity", "utility_by_group"):
        for wrong in parameters(getattr(synth, name)):
            said = listen(getattr(synth, name), {wrong.name: DATA[kind]})
            assert "98765" not in said, f"{name}({wrong.name}=…): {said[:300]}"


def listen(door, given):
    """What is said to whoever calls it so: it may go to a log."""
    try:
        door(**given)
    except TypeCheckError:  # of the tests alone, which check the types of arrays
        return ""
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def test_the_frame_in_place_of_the_formula_is_told_as_such():
    with pytest.raises(hr.HedgerowError, match=r"formula must be text.*DataFrame\. Data go to fit"):
        hr.Synthesizer(FRAME)
