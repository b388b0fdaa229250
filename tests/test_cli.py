"""The command line, as a person uses it."""

import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from feasible.cli import main
from feasible.tasks import TASKS

ROOT = Path(__file__).parents[1]


def test_tasks_shows_every_task_with_its_constraint_and_settings(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    main(["tasks"])
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    for task in TASKS.values():
        assert any(line.split()[:1] == [task.name] for line in lines)
        assert task.constraint in printed
    rows = {line[:18].strip(): line[18:].split() for line in lines}
    assert rows["training steps"] == ["1M", "100k", "500k", "300k", "700k", "700k"]
    assert rows["Frank-Wolfe step"] == ["0.05", "0.05", "0.05", "0.05", "0.01", "0.01"]
    assert rows["batch size"] == ["64", "16/64", "16/64", "16/64", "16/64", "16/64"]


def test_tasks_fit_a_terminal_of_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    main(["tasks"])
    printed = capsys.readouterr().out
    assert "…" not in printed
    assert max(len(line) for line in printed.splitlines()) <= 80


def test_help_names_the_commands_and_loads_nothing_heavy() -> None:
    program = (
        "import sys\n"
        "from feasible.cli import main\n"
        "try:\n"
        "    main(['--help'])\n"
        "except SystemExit as end:\n"
        "    print('exit', end.code)\n"
        "print([name for name in ('jax', 'numba', 'mujoco', 'matplotlib') if name in sys.modules])\n"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "tasks" in finished.stdout
    assert finished.stdout.splitlines()[-2:] == ["exit 0", "[]"]


def test_an_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["task"])
    assert end.value.code == 2
    printed = capsys.readouterr()
    assert "tasks" in printed.err + printed.out


def test_the_installed_command_is_this_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, _, name = project["scripts"]["feasible"].partition(":")
    assert getattr(importlib.import_module(module), name) is main
