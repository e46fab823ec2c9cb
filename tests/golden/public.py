"""What others rely on, as files: public names, the help of every command, both JSON Schemas.

    python tests/golden/public.py           # tell what differs from tests/golden/public
    python tests/golden/public.py --write   # after a change that is meant; the diff belongs into the commit

Names and options may be added. One that is renamed or goes breaks somebody's script.
"""

import argparse
import difflib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

# Read by Typer and Rich when they are imported: a width of its own, and no colour.
os.environ |= {"COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1", "TERM": "dumb"}
for forcing in ("GITHUB_ACTIONS", "FORCE_COLOR", "PY_COLORS"):
    os.environ.pop(forcing, None)

import typer  # noqa: E402 - after its environment
from typer.testing import CliRunner  # noqa: E402

import hedgerow as hr  # noqa: E402
from hedgerow.cli import app  # noqa: E402

FOLDER = Path(__file__).parent / "public"


def pages() -> dict[str, str]:
    """Every file by its name below the folder."""
    texts = {"names.txt": "\n".join(hr.__all__) + "\n"}
    for words in commands(typer.main.get_command(app)):
        texts[f"help/{'-'.join(('hedgerow', *words))}.txt"] = output(*words, "--help")
    for document in ("plan", "certificate"):
        texts[f"{document}.json"] = output("schema", document)
    return texts


def commands(command: object, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words that lead to a command, for it and all below it."""
    yield words
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, (*words, name))


def output(*arguments: str) -> str:
    """What the command prints, without blanks at the ends of lines."""
    done = CliRunner().invoke(app, arguments, prog_name="hedgerow", catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return "\n".join(line.rstrip() for line in done.output.strip("\n").splitlines()) + "\n"


def differences(texts: dict[str, str]) -> Iterator[str]:
    """A unified diff from what is kept to what is, file by file."""
    names = {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*") if path.is_file()}
    for name in sorted(names | texts.keys()):
        before = (FOLDER / name).read_text(encoding="utf-8") if name in names else ""
        yield from difflib.unified_diff(
            before.splitlines(), texts.get(name, "").splitlines(), f"kept/{name}", f"now/{name}", lineterm=""
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="replace the kept files")
    texts = pages()
    if parser.parse_args().write:
        for path in [path for path in FOLDER.rglob("*") if path.is_file()]:
            path.unlink()
        for name, text in texts.items():
            (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
            (FOLDER / name).write_text(text, encoding="utf-8")
        return 0
    lines = list(differences(texts))
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
