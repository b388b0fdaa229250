"""A Ray cluster of two machines, one of which is lost: every run ends as an undisturbed one."""

import io
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from feasible.run import checkpoint
from feasible.run.checkpoint import STATE
from feasible.run.config import RunConfig
from feasible.run.folder import RunFolder
from feasible.run.launch import grid
from feasible.run.sweep.ray import Cluster
from feasible.run.sweep.sweep import prepare, run_all
from tests.run.runs import CACHE_SETTINGS, ROOT, SMALL, assert_equal_runs

ray = pytest.importorskip("ray", reason="Ray is an extra")

if TYPE_CHECKING:
    from ray.cluster_utils import Cluster as LocalCluster  # pyright: ignore[reportMissingImports]

# JAX warns of every fork; those here only start the processes of the cluster.
pytestmark = [
    pytest.mark.filterwarnings(r"ignore:.*_at_fork:pytest.PytestUnraisableExceptionWarning", r"ignore:os\.fork"),
    pytest.mark.xdist_group("processes"),
]
STEPS = 1000


@pytest.fixture(scope="module")
def machines(cache: Path) -> Iterator["LocalCluster"]:
    """A head that trains one run at a time, and a second machine that trains another."""
    from ray.cluster_utils import Cluster as LocalCluster  # pyright: ignore[reportMissingImports]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), str(ROOT)]))
        patch.setenv("JAX_COMPILATION_CACHE_DIR", str(cache))
        patch.setenv("RAY_raylet_heartbeat_timeout_milliseconds", "2000")
        for name, value in CACHE_SETTINGS.items():
            patch.setenv(name.upper(), str(value))
        patch.delenv("XLA_FLAGS", raising=False)
        local = LocalCluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        yield local
        ray.shutdown()
        local.shutdown()


def configs(variant: str, steps: int) -> list[RunConfig]:
    return grid(
        ["reacher"],
        ["nfwpo"],
        [0, 1],
        steps=steps,
        changes=SMALL,
        variant=variant,
        eval_every=250,
        episodes=2,
        checkpoint_every=100,
    )


def test_nothing_is_lost_with_a_machine(machines: "LocalCluster", tmp_path: Path) -> None:
    second = machines.add_node(num_cpus=1)
    crew = Cluster(str(machines.address), str(tmp_path / "runs"))
    folders = crew.prepare(configs("lost", STEPS))
    lost: list[bool] = []

    def lose_the_second_machine() -> None:
        deadline = time.monotonic() + 120
        while not all((folder.checkpoint / STATE).exists() for folder in folders):
            if time.monotonic() > deadline:
                return
            time.sleep(0.02)
        machines.remove_node(second, allow_graceful=False)
        lost.append(True)

    thread = threading.Thread(target=lose_the_second_machine)
    thread.start()
    console = Console(file=io.StringIO(), width=160)
    failures = run_all(folders, console, crew)
    thread.join()
    assert lost == [True]
    assert failures == []
    assert "2 of 2 done" in console.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]
    undisturbed = prepare(tmp_path / "undisturbed", [folder.config() for folder in folders])
    assert run_all(undisturbed, console) == []
    for folder, other in zip(folders, undisturbed, strict=True):
        assert_equal_runs(folder, other)


def test_a_run_at_an_address_that_is_stopped_ends_with_a_checkpoint(
    machines: "LocalCluster", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("feasible.run.sweep.ray.REFRESH", 0.2)
    crew = Cluster(str(machines.address), f"file://{tmp_path}/runs", slots=1)
    folder = crew.prepare(configs("stopped", 1_000_000))[0]
    there = RunFolder(tmp_path / "runs" / folder.config().name)
    training = crew.start(folder)
    deadline = time.monotonic() + 120
    while not (training.begun and (there.checkpoint / STATE).exists()):
        assert training.failure() is None
        assert time.monotonic() < deadline
        crew.refresh()
        time.sleep(0.05)
    training.stop()
    training.wait()
    saved = checkpoint.read(there.checkpoint)
    assert saved is not None
    assert training.failure() == f"it was stopped at step {saved.step}"
    crew.refresh()
    assert folder.metrics.read_bytes() == there.metrics.read_bytes()
    assert crew.prepare([folder.config()])[0].config() == there.config()


def test_a_cluster_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(**options: object) -> None:
        raise ConnectionError(f"nobody at {options['address']}")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", nobody)
    with pytest.raises(
        ValueError, match=r"--ray: no Ray cluster answers at '10\.0\.0\.1:6379'; start one with `ray start"
    ):
        Cluster("10.0.0.1:6379", str(tmp_path))


def test_without_ray_the_way_to_install_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"--ray needs Ray: pip install 'feasible\[ray\]'\."):
        Cluster("auto", str(tmp_path))
