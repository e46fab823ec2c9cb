"""The documentation site: `make docs` builds it into site/, without a network, warnings as errors.

The source folder is the repository's root, so that pages may link to SECURITY.md, CHANGELOG.md and the
benchmarks as they do on a code host. Pages stay plain Markdown; what only a site can do is done here.
"""

import re
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

import hedgerow

project = "hedgerow"
author = "The hedgerow authors"
copyright = "the hedgerow authors"
release = version = version_of("hedgerow")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
]
root_doc = "docs/index"
include_patterns = ["docs/**", "bench/rival/*.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
exclude_patterns = ["docs/_*", ".*", "site", "src", "tests", "studies", "examples", "recipe", "demo", "dist"]
nitpicky = True
smartquotes = False  # words of code stand in tables without marks

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

autosummary_generate = True
autodoc_typehints = "none"  # signatures stay readable; parameters say what they take
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "inherited-members": True, "exclude-members": "model_config"}
templates_path = [str(Path(__file__).parent / "_templates")]  # autosummary looks from the source folder
default_role = "code"
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "furo"
html_title = "hedgerow"
html_static_path = ["_static"]
html_extra_path = ["_extra"]
html_css_files = ["hedgerow.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f6b4a", "color-brand-content": "#1f6b4a"},
    "dark_css_variables": {"color-brand-primary": "#7fd1a8", "color-brand-content": "#7fd1a8"},
}


class DarkPictures(SphinxPostTransform):
    """A picture with a `-dark` sibling is shown in the version that suits the reader's colours."""

    default_priority = 5  # before pictures are copied

    def run(self, **_: Any) -> None:
        for image in list(self.document.findall(nodes.image)):
            light = Path(image["uri"])
            dark = light.with_name(f"{light.stem}-dark{light.suffix}")
            if (Path(self.app.srcdir) / dark).exists():
                other = image.deepcopy()
                other["uri"], other["candidates"] = str(dark), {"*": str(dark)}
                self.env.images.add_file(self.env.docname, str(dark))
                image["classes"] += ["only-light"]
                other["classes"] += ["only-dark"]
                image.parent.insert(image.parent.index(image) + 1, other)


def join_errors(app: Sphinx, docname: str, source: list[str]) -> None:
    """A figure and its error stay on one line, however narrow the column."""
    source[0] = source[0].replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")


def list_contents(app: Sphinx, docname: str, source: list[str]) -> None:
    """The contents are what the front page lists, by heading; families and rivals have pages below them."""
    below = {"docs/families": r"families/", "docs/rivals": r"\.\./bench/"}
    if docname == root_doc:
        parts = [part.partition("\n") for part in source[0].split("\n## ")[1:]]
        lists = [
            (head, re.findall(r"^- \[.*?\]\((.*?\.md)\)", body, re.MULTILINE)) for head, _, body in parts
        ]
    elif docname in below:
        lists = [("", sorted(set(re.findall(rf"\(({below[docname]}[\w/]+\.md)\)", source[0]))))]
    else:
        return
    for head, pages in lists:
        caption = [f":caption: {head}"] if head else []
        source[0] += "\n".join(["", "```{toctree}", ":hidden:", *caption, "", *pages, "```", ""])


def restructure(app: Sphinx, what: str, name: str, thing: object, options: Any, lines: list[str]) -> None:
    """A docstring is plain text with `code` in it: its headings become rubrics, its bars stay bars."""
    text = "\n".join(lines).replace("|", r"\|").replace("*", r"\*")
    lines[:] = re.sub(r"^(\w.*)\n-{3,}$", r".. rubric:: \1\n", text, flags=re.MULTILINE).split("\n")


def skip(app: Sphinx, what: str, name: str, thing: object, skipped: bool, options: Any) -> bool | None:
    """What `hr` itself has is described on a page of its own, not again in the module that repeats it."""
    return True if what == "module" and getattr(hedgerow, name, None) is thing else None


def setup(app: Sphinx) -> None:
    app.connect("source-read", join_errors)
    app.connect("source-read", list_contents)
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-docstring", restructure)
    app.add_post_transform(DarkPictures)
