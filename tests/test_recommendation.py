"""`--algo recommended` is a method with a preset and changes, and gives way to what is said beside it."""

from pathlib import Path

import pytest

from feasible.cli import main
from feasible.run.folder import RunFolder
from feasible.run.launch import configure, grid
from feasible.run.sweep import prepare
from feasible.tasks import TASKS

MARGIN = {"projected_gradient_margin": 0.1}
OTHERS = {"bss-3": ("fwpo", {}), "nsfnet": ("nfwpo", {"actor_interval": 10, "critic_interval": 10})}


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_a_recommended_run(task: str) -> None:
    algo, changes = OTHERS.get(task, ("projected-gradient", MARGIN))
    assert configure(task, "recommended", 3) == configure(task, algo, 3, settings="fair", changes=changes)


def test_what_is_said_beside_it_counts() -> None:
    said = {"projected_gradient_margin": 0.2, "noise": 0.2}
    config = configure("halfcheetah", "recommended", 0, settings="paper", changes=said)
    assert config == configure("halfcheetah", "projected-gradient", 0, changes=said)


def test_others_are_compared_with_it_in_the_same_settings() -> None:
    both = grid(["reacher"], ["recommended", "ddpg-projection"], [0])
    algos = [(config.algo, config.settings) for config in both]
    assert algos == [("projected-gradient", "fair"), ("ddpg-projection", "fair")]
    both = grid(["reacher"], ["recommended", "ddpg-projection"], [0], settings="paper")
    assert [config.settings for config in both] == ["paper", "paper"]


def test_the_same_run_by_two_names_is_refused(tmp_path: Path) -> None:
    both = grid(["bss-3"], ["recommended", "fwpo"], [0])
    with pytest.raises(ValueError, match=r"Two of the runs are bss-3/fwpo\+fair/seed-0: name each only once"):
        prepare(tmp_path, both)
    assert not any(tmp_path.iterdir())


def test_a_name_like_it_is_understood() -> None:
    with pytest.raises(ValueError, match="There is no algorithm 'recommendd'; did you mean 'recommended'"):
        configure("reacher", "recommendd", 0)


def test_the_command_line_trains_it(tmp_path: Path) -> None:
    main(["train", "--task", "reacher", "--algo", "recommended", "--steps", "20", "--out", str(tmp_path)])
    folder = RunFolder(tmp_path / "reacher" / "projected-gradient+fair+projected_gradient_margin=0.1" / "seed-0")
    assert folder.config() == configure("reacher", "recommended", 0, steps=20)
