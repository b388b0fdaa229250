"""Runs that are killed and interrupted, as processes: resumed, they end as if nothing had happened."""

import random
import signal
import time
from pathlib import Path

import pytest

from feasible.run.folder import RunFolder, read_metrics
from tests.run.runs import assert_equal_runs, command, finish, small_run, wait_until

pytestmark = pytest.mark.xdist_group("processes")


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> RunFolder:
    folder = small_run(tmp_path_factory.mktemp("uninterrupted"))
    code, printed, complaint = finish(command("resume", folder.path, cache=cache))
    assert (code, complaint) == (0, "")
    assert "finished, at step 1000" in printed
    return folder


def checkpoints_seen(folder: RunFolder) -> int:
    state = folder.checkpoint / "state.feasible"
    return state.stat().st_mtime_ns if state.exists() else 0


def test_the_uninterrupted_run_is_complete(uninterrupted: RunFolder) -> None:
    lines = read_metrics(uninterrupted.metrics)
    assert [line["step"] for line in lines] == [250, 500, 750, 1000]
    assert all(len(line["eval/returns"]) == 2 for line in lines)  # pyright: ignore[reportArgumentType]
    assert [path.name for path in uninterrupted.checkpoint.iterdir()] == ["state.feasible"]


def kill_after_a_checkpoint(folder: RunFolder, cache: Path, delay: float) -> bool:
    """Resume a run and kill it some time after it has written a checkpoint; whether the kill came before its end."""
    before = checkpoints_seen(folder)
    process = command("resume", folder.path, cache=cache)
    wait_until(process, lambda: checkpoints_seen(folder) != before)
    time.sleep(delay)
    process.kill()
    code, _, complaint = finish(process)
    assert (code, complaint) in ((-signal.SIGKILL, ""), (0, ""))
    return code != 0


def test_killed_at_three_moments_and_resumed_it_ends_the_same(
    uninterrupted: RunFolder, tmp_path: Path, cache: Path
) -> None:
    folder = small_run(tmp_path)
    assert sum(kill_after_a_checkpoint(folder, cache, delay) for delay in (0.0, 0.03, 0.11)) >= 2
    assert finish(command("resume", folder.path, cache=cache))[0] == 0
    assert_equal_runs(folder, uninterrupted)


def test_ctrl_c_ends_it_with_a_checkpoint_and_resume_goes_on(
    uninterrupted: RunFolder, tmp_path: Path, cache: Path
) -> None:
    folder = small_run(tmp_path, checkpoint_every=5000)
    process = command("resume", folder.path, cache=cache)
    wait_until(process, lambda: folder.metrics.exists() and folder.metrics.stat().st_size > 0)
    process.send_signal(signal.SIGINT)
    code, printed, quiet = finish(process)
    assert (code, quiet) == (130, "")
    assert f"with a checkpoint. Go on with: feasible resume {folder.path}" in printed
    assert finish(command("resume", folder.path, cache=cache))[0] == 0
    assert_equal_runs(folder, uninterrupted)


OTHERS = [
    ("bss-3", "fwpo"),
    ("bss-5", "nfwpo"),
    ("nsfnet", "nfwpo"),
    ("halfcheetah", "nfwpo"),
    ("halfcheetah-box", "nfwpo"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("task", "algo"), [*OTHERS, ("reacher", "ddpg-optlayer"), ("bss-3", "tabular-shaping")])
def test_killed_again_and_again_every_task_ends_the_same(task: str, algo: str, tmp_path: Path, cache: Path) -> None:
    """Episodes of 1000 steps end within the run, the replay wraps around, and kills come at random moments."""
    settings = {"task": task, "algo": algo, "steps": 1400, "eval_every": 700, "checkpoint_every": 130}
    uninterrupted, folder = (small_run(tmp_path / name, **settings) for name in ("uninterrupted", "killed"))  # pyright: ignore[reportArgumentType]
    assert finish(command("resume", uninterrupted.path, cache=cache))[0] == 0
    moments = random.Random(0)
    kills = sum(kill_after_a_checkpoint(folder, cache, moments.uniform(0.0, 0.4)) for _ in range(4))
    assert kills >= 2
    assert finish(command("resume", folder.path, cache=cache))[0] == 0
    assert_equal_runs(folder, uninterrupted)
