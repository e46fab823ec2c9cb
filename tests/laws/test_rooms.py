"""The house stays as docs/architecture.md draws it. Which room may import which is checked by `make lint`."""

import ast
from pathlib import Path

import grimp
import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "hedgerow"
FOLDERS = sorted({file.parent for file in PACKAGE.rglob("*.py")})


def test_no_module_needs_itself():
    """Imports inside functions counted, those for type checkers alone not: no cycle anywhere."""
    graph = grimp.build_graph("hedgerow", exclude_type_checking_imports=True, cache_dir=None)

    edges = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    waiting, done = dict(edges), set()
    while True:
        free = [name for name, needs in waiting.items() if needs <= done]
        if not free:
            break
        done |= set(free)
        for name in free:
            del waiting[name]
    assert sorted(waiting) == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(PACKAGE.parent).as_posix())
def test_a_folder_is_small_and_says_how_to_read_it(folder):
    modules = [file for file in folder.glob("*.py") if file.name not in ("__init__.py", "__main__.py")]
    assert len(modules) <= (13 if folder == PACKAGE else 11)
    assert len((ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or "").split()) >= 8
