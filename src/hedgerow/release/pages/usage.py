"""How a receiver analyses the copies: the rule, and code in Python and R that runs as it stands."""

import json

from hedgerow.errors import CONTROLS
from hedgerow.receive import FROM_ONE
from hedgerow.release.certificate import Certificate
from hedgerow.release.folder import STATISTICS
from hedgerow.release.pages.layout import Layout
from hedgerow.release.plan import Plan
from hedgerow.release.verify.consistency import ENDINGS
from hedgerow.report.html import Html, code, element, link, paragraph, text

_LONGEST_LITERAL = 60  # of a column's name in code
# By format: how a file is begun to be read in Python, and what reads it in R.
_READERS = {
    "csv": ("read_csv(file", "read.csv"),
    "parquet": ("read_parquet(file", "arrow::read_parquet"),
    "arrow": ("read_feather(file", "arrow::read_feather"),
    "stata": ("read_stata(file", "haven::read_dta"),
    "spss": ("read_spss(file", "haven::read_sav"),
    "excel": ("read_excel(file", "readxl::read_excel"),
}
_USUAL = {"sep": ",", "decimal": ".", "encoding": "utf-8"}


def explain_usage(certificate: Certificate, plan: Plan, layout: Layout) -> list[object]:
    """What a receiver does with the copies, in words and in code."""
    copies, rule, receive = len(certificate.copies), certificate.combining, certificate.receive
    fits = rule is not None and (copies > 1 or rule.rule in FROM_ONE)
    several = (
        "Analyse each copy as if it were the original, and take the mean of the estimates. A standard error "
        "from one copy, or from all copies stacked, is too small: it leaves out that the values were drawn. "
        "How much copies differ shows it, and a rule for synthetic copies adds it."
    )
    one = (
        "Analyse the copy as if it were the original. Its standard errors are too small: they leave out that "
        f"the values were drawn, and {'a rule adds it' if fits else 'one copy does not show by how much'}."
    )
    format = certificate.copies[0].format
    python, r = _write_estimate(certificate, plan, layout)
    read_python, read_r = _write_reading(format, layout)
    in_python = [*read_python, f"estimates = [{python.format('copy')} for copy in copies]"]
    in_python += ["print(np.mean(estimates))"]
    in_r = [read_r, f"estimates <- sapply(copies, function(copy) {r.format('copy')})"]
    in_r += ["mean(estimates)"]
    alone, package = format == "csv", _READERS[format][1].split("::")[0]  # which reads it in R
    if fits:
        given = [
            "import sys",
            "sys.dont_write_bytecode = True  # or a __pycache__ is added, which is no part of the release",
            f"import receive  # of this folder; needs NumPy {'alone' if alone else 'and pandas'}",
        ]
        in_python = [
            "import numpy as np",
            *(given if receive else ["from hedgerow import receive"]),
            f'found = receive.intervals(".", lambda table: {{"estimate": {python.format("table")}}})',
            'print(found["estimate"], found["lower"], found["upper"])',
        ]
    if fits and receive:
        in_r = [
            f'source("receive.R")  # of this folder; needs {"base R alone" if alone else package}',
            f'receive_intervals(".", function(table) c(estimate = {r.format("table")}))',
        ]
    return [
        paragraph(several if copies > 1 else one),
        None if rule is None else paragraph(rule.why),
        element("h3", "In Python"),
        _block(*in_python, language="Python"),
        element("h3", "In R"),
        _block(*in_r, language="R"),
        None
        if certificate.statistics is None or certificate.used_not_released
        else paragraph(
            "The statistics that copies follow from are in ", link(STATISTICS), ". With them hedgerow "
            "replays the release: ", code('hedgerow.intervals(".", estimator)'), " has intervals, from one "
            "copy too, of anything that a function of a table returns; without a function, of the model's "
            "own parameters.",
        ),
    ]  # fmt: skip


def _write_estimate(certificate: Certificate, plan: Plan, layout: Layout) -> tuple[str, str]:
    """An estimate from a table, {}, in Python and in R: a mean, or a share where no column has numbers."""
    numbers = [name for name in certificate.outcomes if layout.types[name].endswith("number")]
    column = (numbers or certificate.outcomes)[0]
    quoted = _quote(column if len(column) <= _LONGEST_LITERAL else "name of the column")
    quoted = quoted.replace("{", "{{").replace("}", "}}")
    if numbers:
        codes = {each.outcome: each.codes for each in plan.settings.columns}.get(column, ())
        python, r = f"{{0}}[{quoted}]", f"{{0}}[[{quoted}]]"
        if excluded := ", ".join(str(code) for code in codes if not isinstance(code, str)):  # no amounts
            python, r = (
                f"np.where(np.isin({python}, [{excluded}]), np.nan, {python})",
                f"{r}[!{r} %in% c({excluded})]",
            )
        return f"np.nanmean({python})", f"mean({r}, na.rm = TRUE)"
    return f'np.mean({{0}}[{quoted}] == "a class")', f'mean({{0}}[[{quoted}]] == "a class", na.rm = TRUE)'


def _write_reading(format: str, layout: Layout) -> tuple[list[str], str]:
    """Code that reads the copies, in Python and in R."""
    files, (python, r) = _quote(f"synthetic-copy-*.{ENDINGS[format]}"), _READERS[format]
    said = {"sep": layout.delimiter, "decimal": layout.decimal, "encoding": layout.encoding}
    if format == "csv":
        unusual = [(key, _quote(word)) for key, word in said.items() if word != _USUAL[key]]
        in_r = {"sep": "sep", "decimal": "dec", "encoding": "fileEncoding"}
        python += "".join(f", {key}={word}" for key, word in unusual)
        r += "".join(f", {in_r[key]} = {word}" for key, word in unusual) + ", check.names = FALSE"
    return [
        "import glob",
        "import numpy as np",
        "import pandas as pd",
        f"copies = [pd.{python}) for file in glob.glob({files})]",
    ], f"copies <- lapply(Sys.glob({files}), {r})"


def _block(*lines: str, language: str) -> Html:
    """Code in several lines."""
    return element(
        "pre",
        element("code", Html("\n".join(map(text, lines)))),
        aria_label=f"Code in {language}",
        tabindex="0",
    )


def _quote(word: str) -> str:
    """A name as a literal that Python and R read alike, whatever is in it."""
    written = json.dumps(word, ensure_ascii=False)
    return CONTROLS.sub(lambda each: f"\\u{ord(each[0]):04x}", written)
