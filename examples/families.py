"""Run the examples of the families' pages and print what the pages quote.

    python examples/families.py [--write] [gamma poisson ...]

The code is that of docs/families/NAME.md, so that what is printed here is what the page shows; --write puts
it there. The tables are those statsmodels ships: public, so that prices and the sampler's figures may be
shown; of a table of one's own they are confidential.
"""

import argparse
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import hedgerow as hr

PAGES = Path(__file__).parents[1] / "docs" / "families"
EXAMPLE = re.compile(r"```python\n(?P<code>.*?)```\n\n```text\n(?P<output>.*?)```", re.DOTALL)
_FEW = 10  # distinct values up to which shares say more than quantiles


def page(name: str) -> Path:
    """The page of a family."""
    return PAGES / f"{name}.md"


def examples(name: str) -> list[str]:
    """The code blocks of a page that have an output."""
    return [found["code"] for found in EXAMPLE.finditer(page(name).read_text(encoding="utf-8"))]


def run(code: str) -> hr.Synthesizer:
    """What a block leaves behind as `synth`."""
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - the page's own code
    synth = names["synth"]
    assert isinstance(synth, hr.Synthesizer)  # noqa: S101 - what every block must leave
    return synth


def told(synth: hr.Synthesizer) -> str:
    """Prices, health, and the outcome beside its copy."""
    data, copy = synth.outcome_, synth.copied_outcomes()[0]
    health = synth.health_
    lines = [
        f"{len(data)} records; ε of a copy: Lipschitz {synth.lipschitz_epsilon_:.2f}, "
        f"oscillation {synth.oscillation_epsilon_:.2f}",
        f"{health.sampler} draws"
        if health.r_hat is None
        else f"R-hat {health.r_hat:.3f}, bulk ESS {health.ess_bulk:.0f}, tail ESS {health.ess_tail:.0f}, "
        f"{health.divergences} divergences",
    ]
    values = np.unique(data)
    if len(values) <= _FEW:
        heads = [f"{value:g}" for value in values]
        rows = [[f"{(column == value).mean():.3f}" for value in values] for column in (data, copy)]
    else:
        heads = ["at 0", "q10", "q50", "q90", "q99", "mean"]
        rows = [
            [
                f"{(column == 0).mean():.3f}",
                *(f"{np.quantile(column, q):.4g}" for q in (0.1, 0.5, 0.9, 0.99)),
                f"{column.mean():.4g}",
            ]
            for column in (data, copy)
        ]
    for label, cells in zip(("", "data", "copy"), (heads, *rows), strict=True):
        lines.append((f"{label:4}" + "".join(f"{cell:>9}" for cell in cells)).rstrip())
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the pages that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("families", nargs="*", default=sorted(path.stem for path in PAGES.glob("*.md")))
    parser.add_argument("--write", action="store_true", help="put the output into the pages")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in given.families:
        outputs = []
        for code in examples(name):
            outputs.append(told(run(code)))
            print(f"## {name}\n{outputs[-1]}", flush=True)
        if given.write:
            text, left = page(name).read_text(encoding="utf-8"), iter(outputs)
            page(name).write_text(
                EXAMPLE.sub(lambda m: f"```python\n{m['code']}```\n\n```text\n{next(left)}```", text),  # noqa: B023 - used at once
                encoding="utf-8",
            )


if __name__ == "__main__":
    main()
