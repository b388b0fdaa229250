"""A Ray cluster of two machines, one of which is lost: every run ends as an undisturbed one."""

import io
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from rich.console import Console

from feasible.cli import main
from feasible.run.config import RunConfig
from feasible.run.disk import checkpoint
from feasible.run.folder import RunFolder
from feasible.run.launch import Options, grid
from feasible.run.sweep.ray import Cluster, _carried
from feasible.run.sweep.sweep import run_all
from tests.run.gate import FOLDER, MACHINE, PATIENCE, Gates, wait_until
from tests.run.runs import METHODS, QUICK, SHORT, assert_equal_runs, environment

if TYPE_CHECKING:
    from ray.cluster_utils import Cluster as LocalCluster  # pyright: ignore[reportMissingImports]

# JAX warns of every fork; those here only start the processes of the cluster.
pytestmark = [
    pytest.mark.filterwarnings(r"ignore:.*_at_fork:pytest.PytestUnraisableExceptionWarning", r"ignore:os\.fork"),
    pytest.mark.xdist_group("processes"),
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is an extra"),
]
MACHINES = ("first", "second")
SETTINGS = {
    # A machine that is gone is known to be lost at once; one that is there may take its time to answer.
    "RAY_health_check_period_ms": "100",
    "RAY_health_check_failure_threshold": "3",
    "RAY_health_check_timeout_ms": str(int(1000 * PATIENCE)),
    # Runs yield to nothing else on a busy machine.
    "RAY_worker_niceness": "0",
    # Processes that no run is trained in.
    "RAY_prestart_worker_first_driver": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}


@pytest.fixture(scope="module")
def gates(tmp_path_factory: pytest.TempPathFactory) -> Gates:
    return Gates(tmp_path_factory.mktemp("gates"))


@pytest.fixture(scope="module")
def machines(cache: Path, gates: Gates) -> Iterator["LocalCluster"]:
    """A head that trains one run at a time, to which machines can be added."""
    import ray  # only here: to import it takes a second, on every worker
    from ray.cluster_utils import Cluster as LocalCluster  # pyright: ignore[reportMissingImports]

    with environment(cache), mock.patch.dict(os.environ, SETTINGS | {FOLDER: str(gates.folder)}):
        head = {**machine("first"), "include_dashboard": False, "no_monitor": True, "wait": False}
        local = LocalCluster(initialize_head=True, head_node_args=head)
        local.wait_for_nodes(PATIENCE)  # Ray itself would wait half a minute
        yield local
        ray.shutdown()
        local.shutdown()


def machine(name: str) -> dict[str, object]:
    """One that trains one run at a time, and whose processes know its name."""
    return {"num_cpus": 1, "env_vars": {MACHINE: name}, "include_log_monitor": False}


def configs(variant: str, algos: Sequence[str]) -> list[RunConfig]:
    options: Options = {**SHORT, "variant": variant}
    return grid(["reacher"], algos, [0], changes=QUICK, **options)


def crew_of(machines: "LocalCluster", place: str) -> Cluster:
    return Cluster(str(machines.address), place, modules=["tests.run.gated"])


def test_nothing_is_lost_with_a_machine(
    machines: "LocalCluster", gates: Gates, undisturbed: dict[str, RunFolder], tmp_path: Path
) -> None:
    """Each machine is in the middle of a run when one is lost; the other takes that run over, from its checkpoint."""
    second = machines.add_node(wait=False, **machine("second"))
    machines.wait_for_nodes(PATIENCE)
    crew = crew_of(machines, str(tmp_path / "runs"))
    folders = crew.prepare(configs("lost", METHODS))
    console = Console(file=io.StringIO(), width=160)
    with ThreadPoolExecutor(1) as pool, ExitStack() as closed:
        names = [folder.config().name for folder in folders]
        at = {name: closed.enter_context(gates.closed(name, 250)) for name in names}
        sweep = pool.submit(run_all, folders, console, crew)
        on = {gate.wait(lambda: not sweep.done()): name for name, gate in at.items()}
        assert set(on) == set(MACHINES)
        machines.remove_node(second, allow_graceful=False)
        at[on["first"]].open()
        lost = at[on["second"]]
        wait_until(lambda: lost.machine() == "first", lambda: not sweep.done())
        lost.open()
        assert sweep.result() == []
    assert "2 of 2 done" in console.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]
    assert gates.starts(on["first"]) == [0]
    assert gates.starts(on["second"]) == [0, 200]
    for folder in folders:
        assert_equal_runs(folder, undisturbed[folder.config().algo])


def test_a_task_of_ones_own_is_carried_to_a_machine(
    machines: "LocalCluster", tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ray copies the folder of its module, which no other process finds."""
    import ray

    pytest.importorskip("Box2D", reason="Gymnasium's lander needs it")
    shutil.copy(Path(__file__).with_name("lander.py"), tmp_path / "carried.py")
    monkeypatch.syspath_prepend(tmp_path)
    tasks = ["--tasks", "carried:lander", "--algos", "nfwpo", "--seeds", "0", "--steps", "60"]
    small = ["--set", "hidden_layers=[16]", "warmup=0", "batch_size=8", "replay_size=90"]
    ray.shutdown()  # what is carried is said at the beginning
    try:
        main(["compare", *tasks, *small, "--ray", str(machines.address), "--out", str(tmp_path / "runs")])
    finally:
        ray.shutdown()
        del sys.modules["carried"]
    assert "1 of 1 done" in capsys.readouterr().out
    (policy,) = (tmp_path / "runs").rglob("policy.feasible")
    assert policy.parent.name == "seed-0"


def test_what_is_too_much_to_carry_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("feasible.run.sweep.ray.CARRIED", 10)
    (tmp_path / "mine.py").write_text("a = 'more than ten bytes'")
    with pytest.raises(ValueError, match=r"--ray: the folder of the task's module, .* put the module into a folder"):
        _carried(tmp_path)


def test_a_run_at_an_address_that_is_stopped_ends_with_a_checkpoint(
    machines: "LocalCluster", gates: Gates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("feasible.run.sweep.ray.REFRESH", 0.0)
    monkeypatch.setattr("feasible.run.sweep.ray.PATIENCE", PATIENCE)
    crew = crew_of(machines, f"file://{tmp_path}/runs")
    (folder,) = crew.prepare(configs("stopped", ["nfwpo"]))
    name = folder.config().name
    there = RunFolder(tmp_path / "runs" / name)
    with gates.closed(name, 250) as gate:
        training = crew.start(folder)
        assert not training.begun
        gate.wait(lambda: training.failure() is None)
        crew.refresh()
        assert training.begun
        training.stop()
        training.wait()
    assert training.failure() == "it was stopped at step 250"
    saved = checkpoint.read(there.checkpoint)
    assert saved == checkpoint.Saved(250, False, (there.metrics.stat().st_size,), ("..",))
    crew.refresh()
    assert folder.metrics.read_bytes() == there.metrics.read_bytes()
    assert crew.prepare([folder.config()])[0].config() == there.config()


def test_a_cluster_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(**options: object) -> None:
        raise ConnectionError(f"nobody at {options['address']}")

    monkeypatch.setattr("ray.is_initialized", lambda: False)
    monkeypatch.setattr("ray.init", nobody)
    with pytest.raises(
        ValueError, match=r"--ray: no Ray cluster answers at '10\.0\.0\.1:6379'; start one with `ray start"
    ):
        Cluster("10.0.0.1:6379", str(tmp_path))


def test_without_ray_the_way_to_install_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"--ray needs Ray: pip install 'feasible\[ray\]'\."):
        Cluster("auto", str(tmp_path))
