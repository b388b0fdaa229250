"""Runs that are killed, as processes, and interrupted: resumed, they end as if nothing had happened."""

import os
import random
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from feasible.cli import main
from feasible.run.disk import checkpoint
from feasible.run.folder import RunFolder, read_metrics
from tests.run.gate import Gates
from tests.run.runs import assert_equal_runs, at_gates, command, finish, short_run, small_run

pytestmark = [pytest.mark.xdist_group("processes"), pytest.mark.usefixtures("shared_programs")]


def killed_at(step: int, folder: RunFolder, cache: Path, gates: Gates) -> None:
    """Resume a run in a process and kill that after a step. It says nothing."""
    with gates.closed(folder.config().name, step) as gate:
        process = command("resume", folder.path, cache=cache, gates=gates)
        gate.wait(lambda: process.poll() is None)
        process.send_signal(signal.SIGKILL)
        assert finish(process) == (-signal.SIGKILL, "", "")


def interrupted_at(step: int, folder: RunFolder, gates: Gates) -> None:
    """Resume a run in this process and press Ctrl-C after a step."""
    with ThreadPoolExecutor(1) as pool, gates.closed(folder.config().name, step) as gate, at_gates(gates):
        ended = False

        def press() -> None:
            gate.wait(lambda: not ended)
            os.kill(os.getpid(), signal.SIGINT)

        pressed = pool.submit(press)
        try:
            with pytest.raises(SystemExit) as end:
                main(["resume", str(folder.path)])
        finally:
            ended = True
        pressed.result()
    assert end.value.code == 130


def test_an_undisturbed_run_is_complete(undisturbed: dict[str, RunFolder]) -> None:
    for run in undisturbed.values():
        lines = read_metrics(run.metrics)
        assert [line["step"] for line in lines] == [150, 300, 400]
        assert all(len(line["eval/returns"]) == 2 for line in lines)  # pyright: ignore[reportArgumentType]
        assert [path.name for path in run.checkpoint.iterdir()] == [checkpoint.STATE]


def test_killed_interrupted_and_resumed_it_ends_the_same(
    monkeypatch: pytest.MonkeyPatch,
    undisturbed: dict[str, RunFolder],
    tmp_path: Path,
    cache: Path,
    gates: Gates,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The kill comes after a line of metrics that the checkpoint has not seen; Ctrl-C, which ends the run with a
    checkpoint of its step, when a line and a checkpoint are due."""
    monkeypatch.setenv("COLUMNS", "400")
    folder = short_run(tmp_path)
    killed_at(170, folder, cache, gates)
    interrupted_at(300, folder, gates)
    said, complaint = capsys.readouterr()
    assert complaint == ""
    assert f"Stopped at step 300 with a checkpoint. Go on with: feasible resume {folder.path}" in said
    assert checkpoint.read(folder.checkpoint) == checkpoint.Saved(300, False, (folder.metrics.stat().st_size,), ("..",))
    with at_gates(gates):
        main(["resume", str(folder.path)])
    assert "finished, at step 400" in " ".join(capsys.readouterr().out.split())
    assert gates.starts(folder.config().name) == [0, 100, 300]
    assert_equal_runs(folder, undisturbed["nfwpo"])


OTHERS = [
    ("bss-3", "fwpo"),
    ("bss-5", "nfwpo"),
    ("nsfnet", "nfwpo"),
    ("halfcheetah", "nfwpo"),
    ("halfcheetah-box", "nfwpo"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("task", "algo"), [*OTHERS, ("reacher", "ddpg-optlayer"), ("bss-3", "tabular-shaping")])
def test_killed_again_and_again_every_task_ends_the_same(
    task: str, algo: str, tmp_path: Path, cache: Path, gates: Gates
) -> None:
    """Episodes of 1000 steps end within the run, the replay wraps around, and kills come at random steps."""
    settings = {"task": task, "algo": algo, "steps": 1400, "eval_every": 700, "checkpoint_every": 130}
    uninterrupted, folder = (small_run(tmp_path / name, **settings) for name in ("uninterrupted", "killed"))  # pyright: ignore[reportArgumentType]
    assert finish(command("resume", uninterrupted.path, cache=cache))[0] == 0
    kills = sorted(random.Random(0).sample(range(131, 1400), 4))
    for step in kills:
        killed_at(step, folder, cache, gates)
    assert finish(command("resume", folder.path, cache=cache, gates=gates))[0] == 0
    assert gates.starts(folder.config().name) == [0, *((step - 1) // 130 * 130 for step in kills)]
    assert_equal_runs(folder, uninterrupted)
