"""Training from a run folder, in this process: killed and interrupted at chosen steps, evaluated and not."""

import random
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from feasible.catalogue.registry import TASKS
from feasible.cli import main
from feasible.run.config import RunConfig
from feasible.run.folder import RunFolder, read_metrics
from feasible.run.launch import configure, new_run
from feasible.run.train import Outcome, train
from feasible.run.watch import Line, Watcher
from tests.run.runs import Killed, Moment, assert_equal_runs, files, lines_without_time
from tests.run.toys import toy_task

pytestmark = [pytest.mark.xdist_group("toy"), pytest.mark.usefixtures("shared_programs")]


class At(Moment, Watcher):
    """Does something at a step."""


@pytest.fixture(autouse=True)
def _toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, "toy", toy_task())  # pyright: ignore[reportArgumentType]


def toy_run(out: Path, **settings: int) -> RunFolder:
    return new_run(out, configure("toy", "nfwpo", 0, **({"checkpoint_every": 70} | settings)))  # pyright: ignore[reportArgumentType]


@pytest.fixture(scope="module")
def uninterrupted(shared_programs: None, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TASKS, "toy", toy_task())  # pyright: ignore[reportArgumentType]
        folder = toy_run(tmp_path_factory.mktemp("uninterrupted"))
        assert train(folder) == Outcome(300, finished=True)
    return folder


def test_killed_at_random_steps_it_ends_the_same(uninterrupted: RunFolder, tmp_path: Path) -> None:
    folder = toy_run(tmp_path)
    for step in (random.Random(0).randrange(5, 70), 69, 71, 139, random.Random(1).randrange(141, 300), 299):
        with pytest.raises(Killed):
            train(folder, At(step, Killed))
        with folder.metrics.open("a") as file:
            file.write('{"step": 77, "eval/ret')  # a line that the kill tore
        assert all("time/steps_per_second" in line for line in read_metrics(folder.metrics))
    assert train(folder).finished
    assert_equal_runs(folder, uninterrupted)


@pytest.mark.parametrize(
    "step", [9, 50, 70, 300], ids=["between events", "at a report", "at a checkpoint", "at the end"]
)
def test_an_interrupt_loses_nothing_whatever_is_due_at_its_step(
    step: int, uninterrupted: RunFolder, tmp_path: Path
) -> None:
    folder = toy_run(tmp_path)
    handler = signal.getsignal(signal.SIGINT)
    saved = None if step == 300 else step
    assert train(folder, At(step, signal.SIGINT)) == Outcome(step, finished=step == 300, saved=saved)
    assert signal.getsignal(signal.SIGINT) is handler
    if step < 300:
        assert train(folder).finished
    assert_equal_runs(folder, uninterrupted)


def test_what_a_run_killed_before_its_first_checkpoint_left_reaches_no_checkpoint(
    uninterrupted: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = toy_run(tmp_path)
    with monkeypatch.context() as patch:  # the kill comes between the first segment and the first state
        patch.setattr("feasible.run.disk.checkpoint.write_archive", _kill)
        with pytest.raises(Killed):
            train(folder)
    assert [path.name for path in folder.checkpoint.iterdir()] == ["replay-33-70.npy"]
    assert not train(folder, At(60, signal.SIGINT)).finished
    assert train(folder).finished
    assert_equal_runs(folder, uninterrupted)


def _kill(*arguments: object) -> None:
    raise Killed


def test_evaluations_do_not_disturb_training(uninterrupted: RunFolder, tmp_path: Path) -> None:
    folder = toy_run(tmp_path, eval_every=300)
    train(folder)
    assert folder.policy.read_bytes() == uninterrupted.policy.read_bytes()
    last, often = read_metrics(folder.metrics)[-1], read_metrics(uninterrupted.metrics)[-1]
    for name in ("eval/returns", "violation/proposed_count", "violation/executed_max"):
        assert last[name] == often[name]


def test_another_seed_is_another_run(uninterrupted: RunFolder, tmp_path: Path) -> None:
    folder = new_run(tmp_path, configure("toy", "nfwpo", 1, checkpoint_every=70))
    train(folder)
    assert folder.policy.read_bytes() != uninterrupted.policy.read_bytes()
    assert lines_without_time(folder) != lines_without_time(uninterrupted)


def test_resuming_a_finished_run_says_so_and_changes_nothing(
    uninterrupted: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RunFolder(Path(shutil.copytree(uninterrupted.path, tmp_path / "run")))
    before = files(folder.path)
    (folder.checkpoint / "replay-263-300.npy").touch()  # killed before the replay was dropped
    main(["resume", str(folder.path), "--tensorboard"])
    assert "was finished before, at step 300" in " ".join(capsys.readouterr().out.split())
    assert files(folder.path) == before


def test_two_processes_on_one_run_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = toy_run(tmp_path)
    before = files(folder.path)
    with folder.locked(), pytest.raises(SystemExit) as end:
        main(["resume", str(folder.path), "--tensorboard"])
    assert end.value.code == 1
    assert capsys.readouterr().err == f"feasible: {folder.path} is being trained by another process.\n"
    assert files(folder.path) == before


def test_training_where_a_run_is_names_resume(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = toy_run(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(["train", "--task", "toy", "--algo", "nfwpo", "--out", str(tmp_path)])
    assert end.value.code == 1
    assert f"go on with `feasible resume {folder.path}`" in capsys.readouterr().err


class Recorder(Watcher):
    def __init__(self) -> None:
        self.begun: list[tuple[str, int]] = []
        self.steps: list[int] = []
        self.lines: list[Line] = []

    def begin(self, configs: Sequence[RunConfig], step: int, memory: str) -> None:
        self.begun += [(config.name, step) for config in configs]

    def advanced(self, step: int) -> None:
        self.steps.append(step)

    def logged(self, config: RunConfig, line: Line) -> None:
        self.lines.append(line)


def test_watchers_see_every_step_and_every_line_of_the_file(tmp_path: Path) -> None:
    folder, recorder = toy_run(tmp_path, steps=60, eval_every=25), Recorder()
    train(folder, recorder)
    assert recorder.begun == [("toy/nfwpo/seed-0", 0)]
    assert recorder.steps == list(range(1, 61))
    assert recorder.lines == read_metrics(folder.metrics)
    assert [line["step"] for line in recorder.lines] == [25, 50, 60]
