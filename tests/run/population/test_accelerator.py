"""Comparisons on an accelerator, below the check for one: tasks in turn, one view, refusals in a sentence."""

from dataclasses import replace
from io import StringIO
from pathlib import Path

import jax
import pytest
from rich.console import Console

from feasible.catalogue.registry import TASKS
from feasible.cli import main
from feasible.run.config import RunConfig
from feasible.run.folder import RunFolder
from feasible.run.launch import configure
from feasible.run.progress import ProgressBar
from feasible.run.sweep.accelerator import require_accelerator, train_by_task
from tests.run.population.toy_runs import toy_configs
from tests.run.runs import assert_equal_runs, files
from tests.run.toys import toy_task

pytestmark = pytest.mark.xdist_group("population")


def console() -> Console:
    return Console(file=StringIO(), width=200)


def printed(shown: Console) -> str:
    assert isinstance(shown.file, StringIO)
    return shown.file.getvalue()


def test_every_task_is_a_population_in_ordinary_folders(
    uninterrupted: list[RunFolder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TASKS, "toy-2", toy_task("toy-2"))  # pyright: ignore[reportArgumentType]
    configs = toy_configs()
    other = [replace(config, task="toy-2") for config in configs]
    mixed = [config for pair in zip(configs, other, strict=True) for config in pair]
    first = console()
    assert train_by_task(tmp_path, mixed, first) == []
    for folder in uninterrupted:
        for task in ("toy", "toy-2"):
            run = RunFolder(tmp_path / replace(folder.config(), task=task).name)
            assert run.config() == replace(folder.config(), task=task)
            if task == "toy":
                assert_equal_runs(run, folder)
    said = printed(first)
    assert said.index("toy: 3 agents need about 0.00 GB of memory") < said.index("toy-2: 3 agents need about")
    assert said.count("100/100") == 2
    assert said.count("agent-steps/s, 0 failed") == 2
    before = files(tmp_path)
    again = console()
    assert train_by_task(tmp_path, mixed, again) == []
    assert files(tmp_path) == before
    assert "agents" not in printed(again)


def test_an_accelerator_without_the_cpu_beside_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def devices(platform: str) -> list[object]:
        raise RuntimeError(f"Unknown backend {platform}")

    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(jax, "devices", devices)
    with pytest.raises(ValueError, match=r"^--device gpu: JAX_PLATFORMS leaves out the CPU.* set it to cuda,cpu\.$"):
        require_accelerator()


@pytest.mark.parametrize("algo", ["ppo-projection", "nfwpo", "sac-projection"])
def test_a_method_that_steps_many_copies_is_refused_before_anything_is_written(algo: str, tmp_path: Path) -> None:
    config = configure("reacher", algo, 0, changes={"copies": 2})
    with pytest.raises(ValueError, match=rf"^algos: {algo} steps 2 copies .*; set copies=1, or train it without"):
        train_by_task(tmp_path, [config], console())
    assert list(tmp_path.iterdir()) == []


def test_a_bar_tells_speed_end_and_failures(uninterrupted: list[RunFolder]) -> None:
    configs: list[RunConfig] = [replace(folder.config(), steps=10_000) for folder in uninterrupted]
    shown = console()
    with ProgressBar(shown) as bars:
        bars.begin(configs, 0, "3 agents need little.")
        bars.evaluated(50, 1.0)
        bars.failed(configs[2], "it diverged [really]")
        bars.logged(configs[0], {"step": 5_000, "time/steps_per_second": 50.0})
    said = printed(shown)
    assert "toy: 3 agents need little." in said
    assert f"{configs[2].name} failed: it diverged [really]" in said
    assert "5000/10000 100 agent-steps/s, 1 failed, expected end" in said
    assert "(in 3 min)" in said  # 100 s of steps and as many evaluations of a second


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "--device gpu: JAX finds no accelerator here; install JAX for CUDA"),
        (["--jobs", "2"], "--jobs is for runs on cores: leave it out, or leave out --device gpu."),
        (["--ray", "auto"], "--ray is for runs on cores: leave it out, or leave out --device gpu."),
    ],
)
def test_what_cannot_be_is_answered_with_one_sentence(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(["compare", "--tasks", "reacher", "--algos", "nfwpo", "--device", "gpu", *options])
    assert end.value.code == 1
    assert capsys.readouterr().err.startswith(f"feasible: {said}")
    assert list(tmp_path.iterdir()) == []
