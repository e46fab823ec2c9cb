"""A command line as a plan, and a plan as a command line.

Flags say the same things as a plan's keys, in the same language: a flag for something with parts takes a
word, or YAML on one line (`--weights "{kind: cap, cap: 2}"`). Numbers in a row are short for the common
ranges: `--radius 0.4,1.8`.
"""

import shlex
from collections.abc import Mapping
from typing import Any

from hedgerow.errors import FieldError, SettingError
from hedgerow.privacy.bounds import LIPSCHITZ, RENYI
from hedgerow.privacy.presets import preset_settings
from hedgerow.privacy.terms import Terms
from hedgerow.privacy.weights import Weights
from hedgerow.release import text
from hedgerow.release.plan import Plan
from hedgerow.release.plan.keys import NO_TARGET, VERSION
from hedgerow.release.plan.kinds import BOUNDED, STANDARDS, write

_PLAIN = ("data", "formula", "bound", "epsilon", "delta", "copies", "draws", "known", "sampling", "dataset",
          "ledger", "seed", "unit", "rows_per_unit", "design_weight")  # fmt: skip
_WRITTEN = ("family", "prior", "declared", "columns", "derived", "checks", "weights", "analyses", "about")
_PARTS = {
    "read": {"read_format": "format", "encoding": "encoding", "delimiter": "delimiter", "decimal": "decimal",
             "missing_word": "missing", "text": "text", "header": "header", "sheet": "sheet"},
    "outputs": {"format": "format", "drop": "drop", "keep": "keep", "formulas": "formulas",
                "dictionary": "dictionary", "keep_levels": "keep_levels", "statistics": "statistics",
                "receive": "receive"},
}  # fmt: skip
_RANGES = ("radius", "brackets", "bounds", "range")
_STRICT = ("limits", "relation", "margin", "noise")


def from_flags(given: Mapping[str, Any], *, base: Plan | None = None, target_needed: bool = True) -> Plan:
    """The plan that flags describe, on top of another if there is one. None and () mean: not given."""
    flags = {name: value for name, value in given.items() if value not in (None, [], ())}
    plain: dict[str, Any] = base.mapping() if base is not None else {"version": VERSION}
    plain |= {name: flags[name] for name in (*_PLAIN, "debias") if name in flags}
    plain |= {name: text.load(flags[name], f"--{name}") for name in _WRITTEN if name in flags}
    for key, names in _PARTS.items():
        part = {short: flags[name] for name, short in names.items() if flags.get(name, False) is not False}
        if "dictionary" in part:
            part["dictionary"] = text.load(part["dictionary"], "--dictionary")
        if part:
            plain[key] = plain.get(key, {}) | part
    if flags.get("drop_missing"):
        plain["missing"] = "drop"
    plain["standard"] = _standard(plain.get("standard", {"kind": "adp"}), flags)
    if plain["standard"].get("kind") in BOUNDED:  # the plan's weights went with its standard
        plain = {k: v for k, v in plain.items() if k not in ("weights", "bound") or k in flags}
    noise_takes_delta = plain["standard"].get("noise") in ("gaussian", "auto")
    if (
        plain.get("bound") != RENYI.name and not noise_takes_delta and "delta" not in flags
    ):  # nor its δ with its bound
        plain.pop("delta", None)
    if "preset" in flags:
        _put_preset(plain, flags["preset"], base)
    if flags.get("no_target") and "epsilon" in flags:
        raise SettingError("--epsilon and --no-target exclude each other. Choose one.")
    if flags.get("no_target") or ("epsilon" not in plain and not target_needed):
        plain["epsilon"] = NO_TARGET
    if not {"formula", "columns"} & plain.keys():
        raise SettingError(
            '--formula is missing: the protected column and its predictors, "payroll ~ log(employees)". For '
            "several protected columns hedgerow init FILE --protect … proposes a plan."
        )
    if "epsilon" not in plain:
        raise SettingError(
            "--epsilon is missing: the target over all copies. To claim nothing, say --no-target."
        )
    plan = Plan.of(plain)
    if plan.settings.debias and "preset" in flags and "debias" not in flags:
        from hedgerow.mechanism.debias import check

        try:
            check(plan.settings)
        except SettingError as error:
            raise SettingError(f"{error} It was the preset that asked for it: say --no-debias.") from None
    return plan


def _put_preset(plain: dict[str, Any], preset: str, base: Plan | None) -> None:
    """Write a preset out into the plan, which then says itself what is done; flags win over it."""
    if base is not None:
        raise SettingError(
            "--preset and --plan exclude each other: a plan has every setting, and none is left to fill in."
        )
    own = ["weights", "bound"] if plain["standard"].get("kind") in BOUNDED else []
    noisy = "limits" in plain["standard"]
    plain |= preset_settings(preset, epsilon=plain.get("epsilon"), given=[*plain, *own], noisy=noisy)
    if isinstance(plain.get("weights"), Weights):
        plain["weights"] = write(plain["weights"], "weights")


def _standard(before: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    """The standard of a plan, with what flags say of it and of its range."""
    ranges = [name for name in _RANGES if name in flags]
    if len(ranges) > 1:
        raise SettingError(f"--{ranges[0]} and --{ranges[1]} exclude each other. A release has one range.")
    standard = dict(before)
    if "standard" in flags:
        given = text.load(flags["standard"], "--standard")
        standard = {"kind": given} if isinstance(given, str) else given
        if not isinstance(standard, dict):
            raise FieldError(f"--standard must be one of {', '.join(STANDARDS)}.")
        if isinstance(standard.get("range"), dict):
            standard["range"].setdefault("because", None)
        elif (
            "range" in before and _takes_range(standard) and standard.get("kind") != "strict"
        ):  # it keeps the plan's
            standard["range"] = before["range"]
    _put_limits(standard, flags)
    about_range = [*ranges, *(name for name in ("because", "public_weight") if name in flags)]
    if about_range and not _takes_range(standard):
        flag = about_range[0].replace("_", "-")
        raise SettingError(
            f"--{flag} goes with a range standard: add --standard range-truncated or range-averaged."
        )
    if ranges:
        standard["range"] = {"because": None, **_parse_range(ranges[0], flags[ranges[0]])}
    strict = standard.get("kind") == "strict"
    if "because" in flags and strict:  # of the limits, and of sets within them
        standard["reason"] = flags["because"]
    if "because" in flags and ("range" in standard or not strict):
        if "range" not in standard:
            raise SettingError("--because says why a range is public: add --radius, --brackets or --range.")
        standard["range"] = standard["range"] | {"because": flags["because"]}
    if "public_weight" in flags:
        standard["public_weight"] = flags["public_weight"]
    return standard


def _put_limits(standard: dict[str, Any], flags: Mapping[str, Any]) -> None:
    """Put what flags say of noisy statistics into a strict standard."""
    given = [name for name in _STRICT if name in flags]
    if given and standard.get("kind") != "strict":
        raise SettingError(f"--{given[0]} goes with --standard strict.")
    standard |= {name: flags[name] for name in given}
    if "limits" in given:
        said = flags["limits"].strip()
        if said.startswith("{"):
            ends = text.load(said, "--limits")
        elif len(ends := [text.plain(end.strip()) for end in said.split(",")]) != 2:
            raise FieldError(
                f"--limits takes two numbers with a comma between them, got {len(ends)}; of several columns "
                'limits by name: "{wage: [1000, 1e6]}".'
            )
        standard["limits"] = ends
        standard.pop("box", None)
    if "margin" in given:
        standard["margin"] = {"share": flags["margin"]}


def _takes_range(standard: Mapping[str, Any]) -> bool:
    model = STANDARDS.get(str(standard.get("kind")))
    return model is not None and "range" in model.model_fields


def _parse_range(name: str, value: str) -> dict[str, Any]:
    if name == "range":
        given = text.load(value, "--range")
        if isinstance(given, str):
            return {"kind": given}
        if not isinstance(given, dict):
            raise FieldError('--range takes YAML on one line: "{kind: radius, a: 0.4, b: 1.8}".')
        return given
    parts = [text.plain(part.strip()) for part in value.split(",")]
    if name == "brackets":
        return {"kind": "brackets", "edges": parts}
    if len(parts) != 2:
        raise FieldError(f"--{name} takes two entries with a comma between them, got {len(parts)}.")
    return {
        "kind": name,
        **dict(zip(("a", "b") if name == "radius" else ("lower", "upper"), parts, strict=True)),
    }


def to_flags(plan: Plan) -> list[str]:
    """The arguments of `hedgerow synthesize` that stand for this plan, without --out."""
    plain = plan.mapping()
    arguments = [plan.data] if plan.data is not None else []
    for name in _PLAIN[1:]:
        default = LIPSCHITZ.name if name == "bound" else getattr(Terms, name, None)
        if name in plain and plain[name] not in (default, NO_TARGET):
            arguments.append(f"--{name.replace('_', '-')}={plain[name]}")
    arguments += ["--no-target"] if plan.settings.epsilon is None else []
    arguments += ["--drop-missing"] if plan.missing == "drop" else []
    arguments += ["--debias"] if plan.settings.debias else []
    arguments += [f"--{name}={text.dump_line(plain[name])}" for name in _WRITTEN if name in plain]
    for key, names in _PARTS.items():
        for name, short in names.items():
            value = plain.get(key, {}).get(short, [])
            flag = name.replace("_", "-")
            if value is True:
                arguments.append(f"--{flag}")
                continue
            value = text.dump_line(value) if isinstance(value, dict) else value
            arguments += [f"--{flag}={item}" for item in (value if isinstance(value, list) else [value])]
    standard = plain["standard"]
    whole = set(standard) - {"kind", "range", "public_weight"}  # parts without a flag go along as YAML
    arguments.append(f"--standard={text.dump_line(standard) if whole else standard['kind']}")
    if "range" in standard and not whole:
        known = dict(standard["range"])
        because = known.pop("because", None)
        arguments.append(f"--range={text.dump_line(known)}")
        arguments += [f"--because={because}"] if because is not None else []
    if standard.get("public_weight") == "one":
        arguments.append("--public-weight=one")
    return arguments


def command(plan: Plan) -> str:
    """The command that makes the plan's release, for a shell."""
    return shlex.join(["hedgerow", "synthesize", *to_flags(plan), "--out=release"])
