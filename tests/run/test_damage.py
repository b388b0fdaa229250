"""Damaged run folders and full disks: one sentence each, exit code 1, and nothing good is lost."""

import errno
import json
import os
import resource
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from feasible.cli import main
from feasible.run.disk.archive import read_archive, write_archive
from feasible.run.folder import RunFolder, read_metrics
from feasible.run.launch import configure, new_run
from feasible.run.train import train
from feasible.run.watch import Watcher
from tests.run.runs import assert_equal_runs, files

pytestmark = [pytest.mark.xdist_group("toy"), pytest.mark.usefixtures("shared_programs", "toy")]


class At(Watcher):
    """Does something at a step."""

    def __init__(self, step: int, action: Callable[[], object]):
        self.step, self.action = step, action

    def advanced(self, step: int) -> None:
        if step == self.step:
            self.action()


def toy_run(out: Path) -> RunFolder:
    return new_run(out, configure("toy", "nfwpo", 0, steps=140, checkpoint_every=30))


@pytest.fixture(scope="module")
def whole(toy: None, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run that was never damaged."""
    folder = toy_run(tmp_path_factory.mktemp("whole"))
    train(folder)
    return folder


@pytest.fixture(scope="module")
def stopped(toy: None, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run that was interrupted after step 77, with its replay in several segments."""
    folder = toy_run(tmp_path_factory.mktemp("stopped"))
    train(folder, At(77, lambda: os.kill(os.getpid(), signal.SIGINT)))
    assert sorted(path.name for path in folder.checkpoint.glob("replay-*")) == [
        "replay-30-60.npy",
        "replay-60-77.npy",
    ]
    return folder


@pytest.fixture
def folder(stopped: RunFolder, tmp_path: Path) -> RunFolder:
    return RunFolder(Path(shutil.copytree(stopped.path, tmp_path / "run")))


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """The one sentence that a command that fails prints."""
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    assert end.value.code == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("feasible: ")
    return lines[0].removeprefix("feasible: ")


def truncate(path: Path, share: float = 0.5) -> None:
    os.truncate(path, int(path.stat().st_size * share))


def a_bit_of_its_last_row(path: Path) -> None:
    contents = bytearray(path.read_bytes())
    contents[-20] ^= 1  # the checksum takes the last eight bytes
    path.write_bytes(contents)


def of_another_version(path: Path) -> None:
    description, arrays = read_archive(path)
    write_archive(path, {**description, "format": 99}, arrays)


def without_an_array(path: Path) -> None:
    description, arrays = read_archive(path)
    arrays.popitem()
    del arrays["group-0/carry.algorithm.critic.layers[0].weight"]
    write_archive(path, description, arrays)


def in_the_middle(path: Path) -> None:
    contents = bytearray(path.read_bytes())
    contents[contents.index(b'"tally"') + 1] ^= 1
    path.write_bytes(contents)


DAMAGES: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "state cut": ("checkpoint/state.feasible", truncate, "is damaged"),
    "state emptied": ("checkpoint/state.feasible", lambda path: truncate(path, 0.0), "is damaged"),
    "a bit of the state": ("checkpoint/state.feasible", in_the_middle, "is damaged"),
    "another version": ("checkpoint/state.feasible", of_another_version, "has checkpoint format 99"),
    "another algorithm": ("checkpoint/state.feasible", without_an_array, "lacks group-0/carry.algorithm.critic"),
    "segment cut": ("checkpoint/replay-30-60.npy", truncate, "replay-30-60.npy is damaged"),
    "segment emptied": ("checkpoint/replay-60-77.npy", lambda path: truncate(path, 0.0), "replay-60-77.npy is damaged"),
    "a bit of a segment": (
        "checkpoint/replay-30-60.npy",
        a_bit_of_its_last_row,
        "replay-30-60.npy is damaged: its rows have another checksum than when they were written",
    ),
    "segment missing": ("checkpoint/replay-60-77.npy", Path.unlink, "lacks rows 60 to 76 of the replay"),
    "first segment missing": ("checkpoint/replay-30-60.npy", Path.unlink, "lacks rows 40 to 76 of the replay"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_refused_with_advice_that_works(
    damage: str, folder: RunFolder, whole: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    name, harm, said = DAMAGES[damage]
    harm(folder.path / name)
    with folder.metrics.open("a") as file:
        file.write('{"step": 78, "tor')
    before = files(folder.path)
    sentence = complaint(capsys, "resume", folder.path)
    assert said in sentence
    assert sentence.endswith(f"or delete {folder.checkpoint} and resume from step 0.")
    assert files(folder.path) == before
    if damage == "state cut":
        shutil.rmtree(folder.checkpoint)
        main(["resume", str(folder.path)])
        assert_equal_runs(folder, whole)


def test_a_policy_in_the_place_of_a_checkpoint(folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(folder.policy, folder.checkpoint / "state.feasible")
    assert "state.feasible holds no checkpoint." in complaint(capsys, "resume", folder.path)


def test_what_a_kill_leaves_is_cleared_away(folder: RunFolder, whole: RunFolder) -> None:
    (folder.checkpoint / "state.feasible.part").write_bytes(b"half")
    (folder.checkpoint / "replay-77-90.npy.part").write_bytes(b"half")
    shutil.copy(folder.checkpoint / "replay-60-77.npy", folder.checkpoint / "replay-77-94.npy")
    with folder.metrics.open("a") as file:
        file.write('{"step": 78, "tor')
    assert [line["step"] for line in read_metrics(folder.metrics)] == [50]
    main(["resume", str(folder.path)])
    assert_equal_runs(folder, whole)
    assert [path.name for path in folder.checkpoint.iterdir()] == ["state.feasible"]


def test_metrics_shorter_than_the_checkpoint_has_seen(folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    truncate(folder.metrics)
    before = files(folder.path)
    assert "Put the file back, or delete the folder" in complaint(capsys, "resume", folder.path)
    assert files(folder.path) == before


def test_a_damaged_line_in_the_middle_is_named(folder: RunFolder) -> None:
    text = folder.metrics.read_text()
    folder.metrics.write_text("{}\n" + text[:20] + "\n" + text)
    with pytest.raises(ValueError, match=r"metrics\.jsonl is damaged in line 2"):
        read_metrics(folder.metrics)


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", "is damaged or of another version"), ('{"task": "toy"}', "is damaged or of another version")],
)
def test_a_damaged_configuration(text: str, said: str, folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    (folder.path / "config.json").write_text(text)
    assert said in complaint(capsys, "resume", folder.path)


def test_a_configuration_of_a_later_version(folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder.path / "config.json"
    config = json.loads(path.read_text())
    config["algorithm"]["colour"] = "red"
    path.write_text(json.dumps(config))
    assert "unexpected keyword argument 'colour'" in complaint(capsys, "resume", folder.path)


def test_no_run_at_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("resume", "evaluate"):
        sentence = complaint(capsys, name, tmp_path / "nowhere")
        assert sentence == f"{tmp_path / 'nowhere'} holds no run: there is no config.json in it."
    complaint(capsys, "resume", tmp_path / "nowhere", "--tensorboard")
    assert not (tmp_path / "nowhere").exists()


def test_the_policy_of_another_task(folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    description, arrays = read_archive(folder.policy)
    for change, said in (
        ({"observation_size": 11}, "from observations of size 11 to actions of size 2"),
        ({"action_high": [2.0, 2.0]}, "of actions between [-1.0, -1.0] and [2.0, 2.0]"),
        ({"format": 99}, "holds no policy that this version of feasible reads"),
    ):
        write_archive(folder.policy, {**description, **change}, arrays)
        assert said in complaint(capsys, "evaluate", folder.path)
    write_archive(folder.policy, description, {name: array[:1] for name, array in arrays.items()})
    assert "belongs to another algorithm, task or setting" in complaint(capsys, "evaluate", folder.path)
    folder.policy.unlink()
    assert "has no policy yet" in complaint(capsys, "evaluate", folder.path)


def test_a_full_disk_leaves_the_last_checkpoint(
    folder: RunFolder, whole: RunFolder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(folder.checkpoint)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        sentence = complaint(capsys, "resume", folder.path)
    assert "could not be written (No space left on device): free some space" in sentence
    assert files(folder.checkpoint) == before
    main(["resume", str(folder.path)])
    assert_equal_runs(folder, whole)


@pytest.mark.parametrize("limit", [300, 1500, 3000, 9000])
def test_a_write_that_fails_in_the_middle_leaves_the_last_checkpoint(
    limit: int, folder: RunFolder, whole: RunFolder
) -> None:
    """A real limit on the size of files stands for the full disk: of metrics, segments, the policy or the state."""
    before = files(folder.checkpoint)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with pytest.raises(OSError, match="could not be written"):
            train(folder, At(80, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    after = files(folder.checkpoint)
    assert {name: after[name] for name in before} == before
    assert not [name for name in files(folder.path) if name.endswith(".part")]
    main(["resume", str(folder.path)])
    assert_equal_runs(folder, whole)
