"""What the base installation leaves out is named in one sentence, by the extras that the package declares."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

import feasible
from feasible.catalogue.registry import TASKS
from feasible.cli import main
from feasible.extras import PACKAGES, MissingExtraError

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
DECLARED: dict[str, list[str]] = PROJECT["optional-dependencies"]


def test_every_extra_is_declared_and_all_has_every_one_but_those_of_torch() -> None:
    assert set(PACKAGES) == set(DECLARED) - {"all", "bench", "dev"}
    (everything,) = DECLARED["all"]
    names = re.fullmatch(r"feasible\[(.*)\]", everything)
    assert names is not None
    assert set(names[1].split(",")) == set(PACKAGES) - {"torch", "sb3"}
    assert "feasible[all]" in DECLARED["dev"]


def test_the_citation_has_the_version() -> None:
    citation = (Path(__file__).parents[1] / "CITATION.cff").read_text()
    assert f"\nversion: {PROJECT['version']}\n" in citation


def test_the_base_installation_has_no_package_of_an_extra() -> None:
    base = {re.split(r"[\[<>=]", line)[0] for line in PROJECT["dependencies"]}
    assert base.isdisjoint({"mujoco", "numba", "imageio", "ray", "tensorboard", "cvxpy", "flatbuffers", "torch"})


@pytest.mark.parametrize("name", ["portfolio", "reacher", "humanoid-ball", "nsfnet-20", "bss-3"])
def test_a_task_says_which_extra_it_needs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mujoco", None)
    monkeypatch.setitem(sys.modules, "numba", None)
    robots, simulated = ("reacher", "humanoid-ball"), ("nsfnet-20", "bss-3")
    assert TASKS[name].extra == ("mujoco" if name in robots else "network" if name in simulated else None)
    if TASKS[name].extra is None:
        feasible.make(name)
        return
    package = "MuJoCo" if name in robots else "Numba"
    said = rf"The task '{name}' needs {package}: pip install 'feasible\[{TASKS[name].extra}\]'\."
    with pytest.raises(MissingExtraError, match=said):
        feasible.make(name)
    with pytest.raises(ValueError, match=said):
        feasible.make_vec(name, 2)


def test_tasks_that_cannot_run_here_are_listed_with_what_they_need(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    main(["tasks", "reacher"])
    assert "needs" not in capsys.readouterr().out
    monkeypatch.setitem(sys.modules, "mujoco", None)
    main(["tasks", "reacher"])
    assert "needs: pip install 'feasible[mujoco]'" in capsys.readouterr().out
