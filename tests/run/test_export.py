"""Exported policies: run in a process that cannot import the library, they act as the policy does."""

import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import gymnasium as gym
import jax
import numpy as np
import pytest

import feasible as fs
from feasible.agents import Agent
from feasible.algorithms.spec import spec_of
from feasible.catalogue.registry import TASKS, algorithm_of, find_task
from feasible.cli import main
from feasible.constraints import ConstrainedEnv
from feasible.run import export
from feasible.run.disk.archive import write_atomically
from feasible.run.folder import RunFolder
from feasible.run.launch import configure, new_run
from feasible.run.loading import load_run
from feasible.run.train import train
from tests.run.gate import PATIENCE
from tests.run.toys import SavedDrift, force, toy_task

# What a person needs to run an export, and no more.
STRANGER = """
import sys, zipfile
sys.modules["feasible"] = None
import jax, numpy as np
for path in sys.argv[1:]:
    with zipfile.ZipFile(path) as archive:
        policy = jax.export.deserialize(bytearray(archive.read("policy.stablehlo")))
    given = np.load(path + ".batches.npz")
    np.savez(path + ".answers.npz", **{
        f"{batch}/{name}": value for batch in given.files for name, value in policy.call(given[batch]).items()
    })
assert not any(name.startswith("feasible.") for name in sys.modules)
"""


def run_elsewhere(asked: Mapping[Path, Mapping[str, np.ndarray]]) -> list[dict[str, np.ndarray]]:
    """The answers of exports to batches of observations, in one process without the library."""
    for path, batches in asked.items():
        np.savez(f"{path}.batches.npz", **batches)  # pyright: ignore[reportArgumentType]
    program = [sys.executable, "-I", "-c", STRANGER, *map(str, asked)]
    subprocess.run(program, check=True, capture_output=True, text=True, timeout=PATIENCE)
    found = []
    for path in asked:
        with np.load(f"{path}.answers.npz") as answers:
            found.append(dict(answers))
    return found


def described(path: Path) -> dict:
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("description.json"))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, shared_programs: None) -> RunFolder:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TASKS, "toy", toy_task())  # pyright: ignore[reportArgumentType]
        folder = new_run(tmp_path_factory.mktemp("runs"), configure("toy", "nfwpo", 0, steps=60))
        assert train(folder).finished
    return folder


@pytest.fixture(autouse=True)
def _toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, "toy", toy_task())  # pyright: ignore[reportArgumentType]


def untrained(task: str, env: ConstrainedEnv) -> Agent:
    """An agent that has its policy only: nothing else is compiled."""
    algorithm, spec = algorithm_of(find_task(task), "nfwpo", "default", {"hidden_layers": (8,)}), spec_of(env)
    policy = jax.jit(lambda key: algorithm.policy(algorithm.init(key, spec)))(jax.random.key(0))
    return Agent(env, algorithm, 0, policy)


@pytest.mark.usefixtures("plain_processes")
def test_exports_act_as_their_policies_do_where_there_is_no_library(trained: RunFolder, tmp_path: Path) -> None:
    """Of the toy, and of the paper's tasks: integer allocations, a budget and link capacities, so that rounding,
    breakpoints and active sets are in one file each."""
    out = tmp_path / "toy.zip"
    main(["export", str(trained.path), "--out", str(out)])
    rng = np.random.default_rng(0)
    many = np.column_stack([rng.normal(size=(50, 2)), rng.uniform(0.01, 0.8, 50)]).astype(np.float32)
    empty = np.array([[0.0, 0.0, -1.0], [0.0, np.nan, 1.0]], np.float32)
    tasks = ("bss-5", "halfcheetah", "nsfnet")
    envs = [fs.make(task) for task in tasks]
    rows = [np.stack([np.asarray(env.reset(seed=seed)[0], np.float32) for seed in range(3)]) for env in envs]
    agents = [untrained(task, env) for task, env in zip(tasks, envs, strict=True)]
    files = [tmp_path / f"{task}.zip" for task in tasks]
    for file, agent in zip(files, agents, strict=True):
        agent.export(file)
    asked = {file: {"rows": batch} for file, batch in zip(files, rows, strict=True)}
    toy, *others = run_elsewhere({out: {"many": many, "one": many[:1], "empty": empty}, **asked})

    env = fs.constrain(SavedDrift(), force)
    agent = fs.load(trained.policy, env)  # pyright: ignore[reportArgumentType]
    np.testing.assert_allclose(toy["many/action"], agent.predict(many), atol=1e-6)
    np.testing.assert_allclose(toy["one/action"], agent.predict(many[:1]), atol=1e-6)
    assert np.all(np.linalg.norm(toy["many/action"], axis=1) <= many[:, 2] * (1 + 1e-5))
    assert np.all(toy["many/violation"] <= toy["many/tolerance"])
    assert not np.any(toy["empty/violation"] <= toy["empty/tolerance"])
    for env, agent, batch, answer in zip(envs, agents, rows, others, strict=True):
        np.testing.assert_allclose(answer["rows/action"], agent.predict(batch), rtol=1e-4, atol=1e-4)
        for row, action in zip(batch, answer["rows/action"], strict=True):
            assert env.constraint(row).contains(action)


def test_the_description_says_what_it_is_and_no_path_of_this_machine(trained: RunFolder, tmp_path: Path) -> None:
    main(["export", str(trained.policy), "--out", str(tmp_path / "toy.zip")])
    about = described(tmp_path / "toy.zip")
    assert about["input"] == {"observations": {"shape": ["batch", 3], "dtype": "float32"}}
    assert about["output"]["action"] == {"shape": ["batch", 2], "dtype": "float32"}
    assert about["set"] == {"kind": "Disc", "residuals": ["||a - centre|| - radius"]}
    assert about["program"]["platforms"] == ["cpu", "cuda"]
    assert (about["task"], about["constraint"], about["algo"], about["seed"]) == ("toy", "||a|| <= obs[2]", "nfwpo", 0)
    assert about["algorithm"]["kind"] == "DDPG"
    assert set(about["versions"]) >= {"feasible", "jax", "numpy"}
    assert not re.search(rb"site-packages|src/feasible", (tmp_path / "toy.zip").read_bytes())


def test_the_file_lies_beside_the_policy_and_is_replaced_by_the_next(
    trained: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["export", str(trained.path)])
    out = trained.path / "policy.zip"
    assert str(out) in capsys.readouterr().out.replace("\n", "")
    first = out.read_bytes()
    main(["export", str(trained.path)])
    assert out.read_bytes() == first


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_what_cannot_be_exported_is_said_and_nothing_is_written(
    trained: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = new_run(tmp_path, configure("toy", "nfwpo", 0))
    here = tmp_path / "here.zip"
    here.write_text("a letter")
    out, run = ["--out", str(tmp_path / "out.zip")], str(trained.path)
    assert "nowhere holds no run" in refused(["export", str(tmp_path / "nowhere"), *out], capsys)
    assert "has no policy yet" in refused(["export", str(new.path), *out], capsys)
    assert "is there already and is no exported policy" in refused(["export", run, "--out", str(here)], capsys)
    assert "is a folder" in refused(["export", run, "--out", str(tmp_path)], capsys)
    assert "is no folder" in refused(["export", run, "--out", str(tmp_path / "a" / "b.zip")], capsys)
    assert here.read_text() == "a letter"
    assert not (tmp_path / "out.zip").exists()


def test_a_full_disk_leaves_the_last_export(
    trained: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, out = load_run(trained.path), tmp_path / "toy.zip"
    export.export_policy(out, loaded.algorithm, loaded.spec, loaded.policy)
    before = out.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("feasible.run.disk.archive.os.fsync", full)
    with pytest.raises(OSError, match="could not be written"):
        write_atomically(out, b"half")
    assert out.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["toy.zip"]


def test_without_flatbuffers_the_sentence_says_how_to_get_it(
    trained: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = fs.constrain(SavedDrift(), force)
    assert isinstance(env, gym.Env)
    agent = fs.load(trained.policy, env)
    monkeypatch.setitem(sys.modules, "flatbuffers", None)
    with pytest.raises(ValueError, match=r"export needs flatbuffers, .*: pip install 'feasible\[export\]'"):
        agent.export(tmp_path / "toy.zip")
    assert list(tmp_path.iterdir()) == []
