"""The commands of the studies where these are not installed."""

import sys

import pytest

from hedgerow.cli import main


@pytest.mark.parametrize("command", [["reproduce"], ["study", "weights"], ["study", "coverage"]])
def test_without_the_studies_a_command_says_how_to_get_them(monkeypatch, capsys, tmp_path, command):
    for name in [name for name in sys.modules if name.partition(".")[0] == "hedgerow_studies"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "hedgerow_studies", None)  # an import of it fails
    monkeypatch.setattr(sys, "argv", ["hedgerow", *command, "--out", str(tmp_path / "results")])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert "pip install ./studies" in " ".join(capsys.readouterr().err.split())
    assert not any(tmp_path.iterdir())


def test_help_does_not_import_the_studies(monkeypatch, capsys):
    for name in [name for name in sys.modules if name.partition(".")[0] == "hedgerow_studies"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "argv", ["hedgerow", "study", "weights", "--help"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert "hedgerow_studies" not in sys.modules
