"""Archives from elsewhere: no more memory than bytes, every field checked, and a policy file that is enough alone."""

import copy
import io
import json
import shutil
import zipfile
from pathlib import Path

import jax
import numpy as np
import pytest

from feasible.algorithms.description import build_algorithm
from feasible.catalogue.registry import find_task, make
from feasible.cli import main
from feasible.run.disk import checkpoint
from feasible.run.disk.archive import ArchiveError, read_archive, write_archive
from feasible.run.drive.plant import plant_of
from feasible.run.folder import RunFolder
from feasible.run.launch import configure, new_run
from feasible.run.policy import load_policy, save_policy
from tests.run.test_damage import complaint
from tests.run.toys import TOY

pytestmark = pytest.mark.usefixtures("toy")


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return new_run(tmp_path / "runs", configure("toy", "nfwpo", 0, steps=140))


@pytest.fixture(scope="module")
def policy(toy: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy file in no run's folder."""
    path, spec = tmp_path_factory.mktemp("policy") / "policy.feasible", plant_of(make("toy")).spec
    save_policy(path, TOY, spec, TOY.policy(TOY.init(jax.random.key(0), spec)), "toy")
    return path


def zipped(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, contents in members.items():
            archive.writestr(name, contents)


def npy(shape: tuple[int, ...], contents: bytes, kind: str = "<f4") -> bytes:
    data = io.BytesIO()
    np.lib.format.write_array_header_1_0(data, {"descr": kind, "fortran_order": False, "shape": shape})
    return data.getvalue() + contents


ARCHIVES: dict[str, tuple[dict[str, bytes], int, str]] = {
    "compressed": ({"description.json": b"{}", "a.npy": npy((10**7,), bytes(4 * 10**7))}, 8, "it is compressed"),
    "compressed description": ({"description.json": b" " * 10**7 + b"{}"}, 8, "it is compressed"),
    "unexpected": ({"description.json": b"{}", "../../x.py": b"1"}, 0, "it holds '../../x.py', which is no array"),
    "beyond its header": ({"description.json": b"{}", "a.npy": npy((1,), bytes(400))}, 0, "has 400 bytes"),
    "a header of terabytes": ({"description.json": b"{}", "a.npy": npy((10**13,), b"1234")}, 0, "has 4 bytes"),
    "nothing in each": ({"description.json": b"{}", "a.npy": npy((10**9,), b"", "|S0")}, 0, "has 0 bytes"),
    "nested": ({"description.json": b"[" * 10**6}, 0, "description.json is nested too deeply"),
}


@pytest.mark.parametrize("attack", ARCHIVES)
def test_an_archive_takes_no_more_memory_than_it_has_bytes(attack: str, tmp_path: Path) -> None:
    members, method, said = ARCHIVES[attack]
    zipped(tmp_path / "file", members, method)
    with pytest.raises(ArchiveError, match=said.replace("(", r"\(").replace(".", r"\.")):
        read_archive(tmp_path / "file")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_that_lie_over_each_other_or_are_there_twice_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "twice", "w") as archive:
        for text in (b"{}", b"[]"):
            archive.writestr("description.json", text)
    with pytest.raises(ArchiveError, match="it holds a name twice"):
        read_archive(tmp_path / "twice")
    zipped(tmp_path / "over", {"description.json": b"{}", "a.npy": npy((1000,), bytes(4000))})
    with zipfile.ZipFile(tmp_path / "over", "a") as archive:
        for number in range(9):  # ten entries of the directory for one member
            archive.filelist.append(copy.copy(archive.getinfo("a.npy")))
            archive.filelist[-1].filename = f"{number}.npy"
        archive._didModify = True  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ArchiveError, match="its members are larger than the file"):
        read_archive(tmp_path / "over")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"algorithm": None}, "None describes no algorithm"),
        ({"algorithm": {"kind": "DDPG"}}, "The settings of DDPG are not those of this version"),
        ({"observation_size": "11"}, "from observations of size '11'"),
        ({"action_low": 3}, "action_low and action_high must be lists"),
        ({"action_high": {"a": 1}}, "action_low and action_high must be lists"),
        ({"action_low": [float("nan"), -1.0]}, "of actions between [nan, -1.0]"),
    ],
)
def test_the_fields_of_a_policy_are_checked(change: dict[str, object], said: str, policy: Path, tmp_path: Path) -> None:
    description, arrays = read_archive(policy)
    write_archive(tmp_path / "policy", {**description, **change}, arrays)
    with pytest.raises(ArchiveError) as refused:
        load_policy(tmp_path / "policy", plant_of(make("toy")).spec)
    assert str(refused.value).startswith(str(tmp_path / "policy"))
    assert said in str(refused.value)
    for name in change:
        write_archive(tmp_path / "policy", {k: v for k, v in description.items() if k != name}, arrays)
        with pytest.raises(ArchiveError, match=f"policy lacks {name}: it is damaged or of another version"):
            load_policy(tmp_path / "policy", plant_of(make("toy")).spec)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"step": -1}, "step must be a whole number of at least 0"),
        ({"step": 2**70}, "step must be a whole number of at most"),
        ({"metrics_sizes": ["all"]}, "metrics_sizes must be a list of int"),
        ({"replay_counts": 3}, "replay_counts must be a list"),
        ({"replay_counts": [[None]]}, "replay_counts must be a whole number"),
        ({"runs": []}, "runs, metrics_sizes and replay_counts are not of as many runs"),
    ],
)
def test_the_fields_of_a_checkpoint_are_checked(
    change: dict[str, object], said: str, folder: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    said_of_all = {"format": checkpoint.FORMAT, "holds": "checkpoint", "step": 0, "finished": False}
    whole = {**said_of_all, "runs": [".."], "metrics_sizes": [0], "failures": {}, "tally": {}}
    folder.checkpoint.mkdir()
    state = folder.checkpoint / checkpoint.STATE
    write_archive(state, {**whole, "replay_counts": [[]], **change}, {})
    sentence = complaint(capsys, "resume", folder.path)
    assert sentence.startswith(f"{state}: {said}")
    assert sentence.endswith("resume from step 0.")
    write_archive(state, whole, {})
    assert f"{state} lacks replay_counts." in complaint(capsys, "resume", folder.path)


class TestPolicyAlone:
    """A policy file in no run's folder."""

    def test_it_is_evaluated_on_the_task_that_it_names(
        self, policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        main(["evaluate", str(policy), "--episodes", "1"])
        named = capsys.readouterr().out.splitlines()
        assert "±" not in "".join(named)  # one episode has no deviation
        description, arrays = read_archive(policy)
        write_archive(tmp_path / "old", {k: v for k, v in description.items() if k != "task"}, arrays)
        assert complaint(capsys, "evaluate", tmp_path / "old") == (
            f"{tmp_path / 'old'} does not say for which task it was trained: name it with --task."
        )
        main(["evaluate", str(tmp_path / "old"), "--episodes", "1", "--task", "toy"])
        assert [line for line in capsys.readouterr().out.splitlines() if "mean" in line] == [
            line for line in named if "mean" in line
        ]

    def test_it_is_exported(self, policy: Path, tmp_path: Path) -> None:
        main(["export", str(policy), "--out", str(tmp_path / "policy.zip")])
        with zipfile.ZipFile(tmp_path / "policy.zip") as archive:
            assert json.loads(archive.read("description.json"))["constraint"] == find_task("toy").words

    @pytest.mark.parametrize(
        ("task", "said"), [("nowhere", "There is no task 'nowhere'"), (["toy"], "task must be"), ("a\nb", "task must")]
    )
    def test_its_task_is_checked(
        self, task: object, said: str, policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        description, arrays = read_archive(policy)
        write_archive(tmp_path / "policy", {**description, "task": task}, arrays)
        assert complaint(capsys, "evaluate", tmp_path / "policy").startswith(f"{tmp_path / 'policy'}: {said}")

    def test_a_folder_names_its_own_task(
        self, folder: RunFolder, policy: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        shutil.copy(policy, folder.policy)
        assert "--task is for a policy file" in complaint(capsys, "evaluate", folder.path, "--task", "toy")


def test_a_table_beyond_all_memory_is_refused() -> None:
    config = configure("bss-3", "fwpo", 0)
    algorithm = build_algorithm({**config.algorithm, "high": 10**6})  # pyright: ignore[reportGeneralTypeIssues]
    with pytest.raises(
        ValueError, match="BikeTable: low 20 to high 1000000 would be a table of more than 10000000 cells"
    ):
        jax.eval_shape(lambda: algorithm.init(jax.random.key(0), plant_of(make("bss-3")).spec))
