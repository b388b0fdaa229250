"""Tasks of one's own: a lander of another package, ten lines in a module, and everything that our tasks can do."""

import json
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv
from jaxtyping import Array

import feasible as fs
from feasible.algorithms.description import Plain
from feasible.catalogue import elsewhere, registry
from feasible.catalogue.registry import TASKS
from feasible.cli import main
from feasible.constraints import ConstrainedVectorEnv
from feasible.run.disk import checkpoint
from feasible.run.folder import RunFolder, RunLockedError, read_metrics
from feasible.run.launch import configure, new_run
from feasible.run.sweep.accelerator import train_together
from feasible.run.watch import Line
from tests.report.conftest import undrawn
from tests.run.gate import Gates
from tests.run.runs import assert_equal_runs, at_gates, command, environment, files, finish, lines_without_time
from tests.run.toys import Drift, SavedDrift, force

pytest.importorskip("Box2D", reason="Gymnasium's lander needs it")
pytestmark = [
    pytest.mark.xdist_group("processes"),
    pytest.mark.usefixtures("shared_programs"),
    pytest.mark.filterwarnings("ignore:builtin type [Ss]wig.* has no __module__:DeprecationWarning"),
]
SOURCE = Path(__file__).with_name("lander.py")
SMALL = ["hidden_layers=[16]", "warmup=0", "batch_size=8", "replay_size=90"]
TRAIN = ["train", "--task", "mine:lander", "--algo", "nfwpo", "--set", *SMALL, "--variant", "small"]
RUN = Path("mine-lander", "nfwpo+small", "seed-0")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a user, with the module in it."""
    folder = tmp_path_factory.mktemp("desk")
    shutil.copy(SOURCE, folder / "mine.py")
    return folder


@pytest.fixture
def mine(desk: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The module is found in this process, and forgotten afterwards."""
    monkeypatch.syspath_prepend(desk)
    yield
    sys.modules.pop("mine", None)


@pytest.fixture(scope="module")
def trained(desk: Path, shared_programs: None) -> RunFolder:
    """A run that nothing has disturbed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(desk)
        patch.chdir(desk)
        main([*TRAIN, "--checkpoint-every", "70"])
        del sys.modules["mine"]
    return RunFolder(desk / "runs" / RUN)


class TestCommands:
    def test_the_folder_says_what_the_task_is(self, trained: RunFolder) -> None:
        said = json.loads((trained.path / "config.json").read_text())
        assert (said["task"], said["title"]) == ("mine:lander", "a lander")
        assert said["constraint"].startswith("|main engine| + |side engines| <= 1.2")
        assert (said["observation_size"], said["action_low"], said["episode_length"]) == (8, [-1.0, -1.0], 60)
        lines = read_metrics(trained.metrics)
        assert [line["step"] for line in lines] == [120, 240]
        assert lines[-1]["violation/executed_max"] <= 2e-5  # pyright: ignore[reportOperatorIssue]

    def test_killed_and_resumed_it_ends_the_same(
        self,
        trained: RunFolder,
        desk: Path,
        mine: None,
        cache: Path,
        gates: Gates,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """The lander has no states to save: checkpoints are of the first beginning of an episode after they are due."""
        run = desk / "killed" / RUN
        with gates.closed(RUN.as_posix(), 200) as gate:
            options = ["--checkpoint-every", "70", "--out", "killed"]
            process = command(*TRAIN, *options, cache=cache, gates=gates, folder=desk)
            gate.wait(lambda: process.poll() is None)
            process.send_signal(signal.SIGKILL)
            assert finish(process) == (-signal.SIGKILL, "", "")
        with at_gates(gates):
            main(["resume", str(run)])
        assert "finished, at step 240" in " ".join(capsys.readouterr().out.split())
        begun, again = gates.starts(RUN.as_posix())
        assert (begun, 70 < again < 200) == (0, True)
        assert_equal_runs(RunFolder(run), trained)

    def test_a_comparison_in_another_process_and_its_report(
        self, desk: Path, mine: None, cache: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(desk)
        compare = ["compare", "--tasks", "mine:lander", "--algos", "nfwpo", "--seeds", "1"]
        options = ["--set", *SMALL, "--variant", "small", "--steps", "120", "--jobs", "2", "--out", "compared"]
        with environment(cache):
            main([*compare, *options])
        printed, complaint = capfd.readouterr()
        assert complaint == ""
        assert "1 of 1 done" in printed
        del sys.modules["mine"]
        (desk / "mine.py").rename(desk / "away.py")  # a report imports nothing
        try:
            with undrawn():
                main(["report", "compared"])
        finally:
            (desk / "away.py").rename(desk / "mine.py")
        assert "mine" not in sys.modules
        page = (desk / "report" / "index.html").read_text()
        assert '"title":"a lander"' in page
        assert "|main engine| + |side engines|" in page

    def test_it_is_evaluated_and_exported(
        self, trained: RunFolder, mine: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        main(["evaluate", str(trained.path), "--episodes", "1"])
        assert "mine-lander" in capsys.readouterr().out
        main(["evaluate", str(trained.policy), "--episodes", "1", "--task", "mine:lander"])
        main(["export", str(trained.path), "--out", str(tmp_path / "policy.zip")])


@pytest.mark.slow
def test_a_population_of_it(mine: None, tmp_path: Path) -> None:
    changes: dict[str, Plain] = {"hidden_layers": [8], "warmup": 0, "replay_size": 90}
    configs = [configure("mine:lander", "nfwpo", seed, steps=60, changes=changes) for seed in (0, 1)]
    folders = [new_run(tmp_path, config) for config in configs]
    assert train_together(folders) == []
    assert [line["step"] for line in read_metrics(folders[1].metrics)] == [60]


class TestNames:
    def test_what_cannot_be_found_is_said(self, mine: None, capsys: pytest.CaptureFixture[str]) -> None:
        for task, said in {
            "nowhere:lander": "task: there is no module 'nowhere'; it was looked for in the current folder, ",
            "mine:nothing": "has no 'nothing'; its tasks are lander.",
            "mine:wrong": "has 'wrong', but that is no Task; its tasks are lander.",
            "mine;lander": "There is no task 'mine;lander'",
            "mine:a b": "is no module:name, with a dotted module name",
            "os.path:join": "has 'join', but that is no Task, and no Task at all.",
        }.items():
            with pytest.raises(SystemExit):
                main(["train", "--task", task, "--algo", "nfwpo"])
            complaint = capsys.readouterr().err
            assert said in complaint
            assert complaint.count("\n") == 1

    def test_a_renamed_task_is_followed_where_it_is_the_same(
        self, trained: RunFolder, desk: Path, mine: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run = tmp_path / "run"
        shutil.copytree(trained.path, run)
        RunFolder(run).change(task="gone:lander")
        with pytest.raises(SystemExit):
            main(["resume", str(run)])
        assert "there is no module 'gone'" in (said := capsys.readouterr().err)
        assert f"`feasible resume {run} --task NAME`" in said
        before = (run / "config.json").read_bytes()
        with pytest.raises(SystemExit):
            main(["resume", str(run), "--task", "reacher"])
        assert "observation_size of the environment is 11, but the run" in capsys.readouterr().err
        assert (run / "config.json").read_bytes() == before
        main(["resume", str(run), "--task", "mine:lander"])
        assert "was finished before, at step 240" in " ".join(capsys.readouterr().out.split())
        assert RunFolder(run).config().task == "mine:lander"

    def test_packages_announce_tasks(self, mine: None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("feasible.catalogue.registry.announced", lambda: {"moon": "mine:lander"})
        assert fs.make("moon").task.title == "a lander"  # pyright: ignore[reportAttributeAccessIssue]

    def test_it_is_listed_and_has_a_recommended_method(
        self, mine: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr("feasible.catalogue.elsewhere.announced", lambda: {"moon": "harbour:moon"})
        for columns in ("160", "50"):
            monkeypatch.setenv("COLUMNS", columns)
            main(["tasks", "mine:lander"])
            printed = " ".join(capsys.readouterr().out.split())
            assert all(word in printed for word in ("mine:lander", "a lander", "|main engine| + |side engines|", "240"))
            assert "reacher" not in printed
            main(["tasks"])  # nothing of a package is imported for the list
            printed = " ".join(capsys.readouterr().out.split())
            assert all(word in printed for word in ("reacher", "moon", "harbour:moon, of a package"))
        main(["algos", "--task", "mine:lander"])
        said = " ".join(capsys.readouterr().out.split())
        assert "--algo recommended on mine:lander: td3-radial, averaged=True, normalised=True, warmup=10000" in said

    def test_a_task_of_this_process_is_not_mistaken_for_one_that_a_package_announces(
        self, mine: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """Here the registered one has the name; other processes would train the package's, so they are not asked."""
        import mine as module  # pyright: ignore[reportMissingImports]

        monkeypatch.setattr("feasible.catalogue.registry.announced", lambda: {"drift": "mine:lander", "gone": "gone:x"})
        monkeypatch.setattr("feasible.catalogue.registry.TASKS", TASKS.copy())
        for name in ("drift", "gone"):
            task = fs.register_task(fs.Task(name, Drift, force, steps=10))
            assert fs.make(name).task is task
            with pytest.raises(ValueError, match=f"'{name}' is known in this process only; .* or train with jobs=1"):
                fs.compare([name], ["nfwpo"], out=tmp_path, jobs=2)
        monkeypatch.setattr("feasible.catalogue.registry.announced", lambda: {"lander": "mine:lander"})
        assert not registry.known_here_only("lander")  # any process finds it
        fs.register_task(module.lander)
        assert not registry.known_here_only("lander")  # the same task under the same name
        assert not registry.known_here_only("mine:lander")
        assert not registry.known_here_only("reacher")

    def test_where_a_task_is_found(self, desk: Path, mine: None) -> None:
        import mine as module  # pyright: ignore[reportMissingImports]

        assert elsewhere.place_of(module.lander) == "mine:lander"
        assert elsewhere.root_of("mine:lander") == desk.resolve()
        assert elsewhere.root_of("reacher") is None
        assert elsewhere.place_of(fs.Task("nobody", Drift, force)) is None


def drift(**changes: object) -> fs.Task:
    return fs.Task("drift", Drift, force, **{"steps": 60, "eval_every": 30, "episodes": 1, **changes})  # pyright: ignore[reportArgumentType]


SETTINGS = {"hidden_layers": (8,), "warmup": 0, "batch_size": 8, "replay_size": 50}


class TestPython:
    """The same from Python, on an environment without saved states."""

    def test_stopped_by_its_callback_and_resumed_it_ends_the_same(self, tmp_path: Path) -> None:
        heard: list[int] = []

        def stop(step: int, metrics: Line, agent: fs.Agent) -> bool:
            assert agent.metrics == metrics
            heard.append(step)
            return step < 80

        options = {"eval_every": 40, "episodes": 2, "checkpoint_every": 15}
        env = lambda: fs.constrain(gym.make(DRIFT), force)  # noqa: E731
        whole = fs.NFWPO(env(), seed=3, **SETTINGS).learn(120, run=tmp_path / "whole", **options)  # pyright: ignore[reportArgumentType]
        stopped = fs.NFWPO(env(), seed=3, **SETTINGS)  # pyright: ignore[reportArgumentType]
        stopped.learn(120, run=tmp_path / "stopped", callback=stop, **options)  # pyright: ignore[reportArgumentType]
        assert (heard, stopped.step) == ([40, 80], 80)
        saved = checkpoint.read(tmp_path / "stopped" / "checkpoint")
        assert saved is not None
        assert 15 < saved.step <= 80
        resumed = fs.resume(tmp_path / "stopped", env())
        assert (resumed.step, whole.step) == (120, 120)
        one, other = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "stopped")
        assert lines_without_time(one) == lines_without_time(other)
        assert one.policy.read_bytes() == other.policy.read_bytes()
        obs = np.zeros(3, np.float32)
        np.testing.assert_array_equal(fs.resume(tmp_path / "stopped", env()).predict(obs), whole.predict(obs))

    def test_learning_goes_on_in_the_same_folder(self, tmp_path: Path) -> None:
        agent = fs.NFWPO(drift().env(), seed=3, **SETTINGS)  # pyright: ignore[reportArgumentType]
        agent.learn(30, run=tmp_path / "run", eval_every=30, episodes=1)
        agent.learn(30, run=tmp_path / "run", eval_every=30, episodes=1)
        assert [line["step"] for line in read_metrics(tmp_path / "run" / "metrics.jsonl")] == [30, 60]
        assert RunFolder(tmp_path / "run").config(named=False).steps == 60
        with pytest.raises(FileExistsError, match="holds a run already"):
            fs.NFWPO(drift().env(), **SETTINGS).learn(10, run=tmp_path / "run")  # pyright: ignore[reportArgumentType]

    def test_commands_are_functions(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        task = drift()
        monkeypatch.setattr("feasible.catalogue.registry.TASKS", TASKS.copy())
        run = fs.train(task, "nfwpo", settings=SETTINGS, out=tmp_path, steps=30)  # pyright: ignore[reportArgumentType]
        assert [line["step"] for line in read_metrics(run / "metrics.jsonl")] == [30]
        with pytest.raises(ValueError, match=r"'drift' is known in this process only; .* or train with jobs=1"):
            fs.compare([task], ["nfwpo"], out=tmp_path, jobs=2)
        runs = fs.compare([task], ["nfwpo"], seeds=[0, 1], settings=SETTINGS, out=tmp_path, steps=30)  # pyright: ignore[reportArgumentType]
        assert [path.name for path in runs] == ["seed-0", "seed-1"]
        with undrawn():
            report = fs.write_report(tmp_path, tmp_path / "report")
        assert report.runs == 2
        assert repr(report).startswith("Report of 2 runs, ")


class Restless(Drift):
    """Begins an episode anywhere, whatever the seed."""

    begun = 0

    def reset(self, *, seed: int | None = None, options: dict[str, object] | None = None):
        Restless.begun += 1
        return super().reset(seed=1000 * Restless.begun)


class Limited(SavedDrift):
    """With saved states, inside Gymnasium's own limit of time."""


gym.register("toy/Limited-v0", entry_point=Limited, max_episode_steps=7)  # pyright: ignore[reportArgumentType]


class TestStops:
    """What a stop must not do."""

    def stopped(self, env: gym.Env | ConstrainedVectorEnv, run: Path, at: int = 60) -> fs.NFWPO:
        agent = fs.NFWPO(env, seed=3, **SETTINGS)  # pyright: ignore[reportArgumentType]
        heard = lambda step, metrics, agent: step < at  # noqa: E731
        agent.learn(120, run=run, callback=heard, eval_every=40, episodes=1, checkpoint_every=15)
        return agent

    def test_an_environment_that_follows_no_seed_executes_nothing_that_was_certified_elsewhere(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        task = fs.Task("restless", Restless, force)
        self.stopped(task.env(), tmp_path / "run")
        assert caplog.messages == []
        resumed = fs.resume(tmp_path / "run", task.env())
        (said,) = caplog.messages
        assert "its reset does not follow its seed. This run goes on in a new episode" in said
        assert resumed.step == 120
        replay = resumed._driver.carry.algorithm.replay  # pyright: ignore[reportOptionalMemberAccess]
        rows = np.asarray(replay.rows)  # [observation (3) | proposed (2) | executed (2) | ...]
        lengths, allowed = np.linalg.norm(rows[:, 5:7], axis=1), rows[:, 2]
        assert np.all(lengths <= allowed + 1e-5)

    def test_a_limit_of_time_is_saved_with_the_state_inside_it(self, tmp_path: Path) -> None:
        make = lambda: fs.constrain(gym.make("toy/Limited-v0"), force)  # noqa: E731
        self.stopped(make(), tmp_path / "whole", at=1000)
        self.stopped(make(), tmp_path / "stopped")
        fs.resume(tmp_path / "stopped", make())
        one, other = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "stopped")
        assert lines_without_time(one) == lines_without_time(other)

    def test_copies_that_remember_their_actions_are_saved_with_them(self, tmp_path: Path) -> None:
        """|a - last| <= 0.3 in the sets of the first steps after resuming, as if nothing had happened."""

        def slowly(obs: Array) -> fs.sets.Box:
            return fs.sets.Box(obs[3:] - 0.3, obs[3:] + 0.3)

        def made() -> ConstrainedVectorEnv:
            copies = SyncVectorEnv([lambda: gym.make("toy/Limited-v0")] * 2)
            return fs.constrain(fs.remember_action(copies), slowly)

        self.stopped(made(), tmp_path / "whole", at=1000)
        self.stopped(made(), tmp_path / "stopped")
        resumed = fs.resume(tmp_path / "stopped", made())
        one, other = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "stopped")
        assert lines_without_time(one) == lines_without_time(other)
        assert one.policy.read_bytes() == other.policy.read_bytes()
        config = one.config(named=False)
        assert (config.task, config.variant.split("+")[1]) == ("toy-Limited-v0", "copies=2")
        rows = np.asarray(resumed._driver.carry.algorithm.replay.rows)  # pyright: ignore[reportOptionalMemberAccess]
        assert np.abs(rows[:, 7:9] - rows[:, 3:5]).max() <= 0.3 + 1e-5  # [observation (5) | proposed | executed | ...]

    def test_a_run_of_a_population_is_left_alone(self, mine: None, tmp_path: Path) -> None:
        folder = new_run(tmp_path, configure("mine:lander", "nfwpo", 0, steps=60, changes={"hidden_layers": [8]}))
        home = tmp_path / "mine-lander" / "population-1"
        home.mkdir()
        folder.checkpoint.mkdir()
        folder.join_population(home, 30)
        before = files(folder.path)
        with pytest.raises(ValueError, match="is trained in a population"):
            fs.resume(folder.path, fs.make("mine:lander"))
        assert files(folder.path) == before

    def test_learning_that_goes_on_in_a_folder_can_be_resumed_from_there(self, tmp_path: Path) -> None:
        agent = self.stopped(drift().env(), tmp_path / "run", at=1000)
        assert agent.step == 120
        agent.learn(60, run=tmp_path / "run", eval_every=30, episodes=2, callback=lambda *heard: False)
        folder = RunFolder(tmp_path / "run")
        assert (folder.config(named=False).steps, folder.config(named=False).episodes) == (180, 2)
        assert fs.resume(folder.path, drift().env()).step == 180
        with pytest.raises(ValueError, match="has gone on without this agent"):
            agent.learn(30, run=tmp_path / "run")

    def test_a_folder_stays_locked_while_its_configuration_is_written(self, tmp_path: Path) -> None:
        self.stopped(drift().env(), tmp_path / "run")
        folder = RunFolder(tmp_path / "run")
        with folder.locked():
            folder.change(steps=150)
            with pytest.raises(RunLockedError), folder.locked():
                pass

    def test_an_interrupt_that_ends_a_call_ends_no_other(self) -> None:
        agent = fs.NFWPO(drift().env(), seed=0, **SETTINGS)  # pyright: ignore[reportArgumentType]

        def fail(step: int, metrics: Line, agent: fs.Agent) -> bool:
            agent._driver.halted = True  # pyright: ignore[reportOptionalMemberAccess]
            raise RuntimeError("the callback")

        with pytest.raises(RuntimeError, match="the callback"):
            agent.learn(20, eval_every=10, episodes=1, callback=fail)
        assert agent.learn(20).step == 30

    def test_without_copies_there_are_no_evaluations(self, tmp_path: Path) -> None:
        agent = fs.NFWPO(fs.constrain(Drift(), force), **SETTINGS)  # pyright: ignore[reportArgumentType]
        agent.learn(0, run=tmp_path / "run")
        agent.learn(30, run=tmp_path / "run")
        assert "eval/return" not in agent.metrics
        with pytest.raises(ValueError, match=r"eval_every: the environment cannot be copied .* make a feasible\.Task"):
            agent.learn(30, eval_every=10)
        for wrong in ({"eval_every": 0}, {"eval_every": 10, "episodes": 0}):
            with pytest.raises(ValueError, match="must be a whole number of at least 1, not 0"):
                agent.learn(30, **wrong)  # pyright: ignore[reportArgumentType]


def test_a_run_is_named_by_its_task_its_method_and_its_settings(tmp_path: Path) -> None:
    agent = fs.agent("ddpg-shaping", drift().env(), **SETTINGS)  # pyright: ignore[reportArgumentType, reportCallIssue]
    agent.learn(20, run=tmp_path / "run")
    config = RunFolder(tmp_path / "run").config(named=False)
    assert (config.task, config.algo) == ("drift", "ddpg-shaping")
    assert config.variant == "batch_size=8+hidden_layers=8+replay_size=50+warmup=0"


def test_evaluations_have_the_options_of_the_environment() -> None:
    envs = (fs.make("reacher", **options) for options in ({}, {"episode_length": 7}))  # pyright: ignore[reportArgumentType]
    plain, short = (fs.NFWPO(env, hidden_layers=(4,)) for env in envs)
    assert short.evaluate(1).mean > plain.evaluate(1).mean + 5


def test_what_is_no_task_is_refused_when_it_is_made() -> None:
    for changes, said in (
        ({"name": "a b"}, "name must be one word"),
        ({"make": 3}, "make must be a function that makes the environment"),
        ({"constraint": 3}, "constraint must be a function from the observation to a set"),
        ({"steps": 0}, "steps must be a whole number of at least 1"),
    ):
        with pytest.raises(ValueError, match=said):
            fs.Task(**{"name": "drift", "make": Drift, "constraint": force, **changes})  # pyright: ignore[reportArgumentType]


def test_a_camera_drives_safely_and_is_refused_where_networks_would_see_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Constraining it is for agents of other libraries; ours say at once that they take no images."""

    def gently(obs: Array) -> fs.sets.ActionSet:
        """|steering| + gas + brake <= 0.5 + the picture's brightness."""
        weights = jnp.ones(3, jnp.float32)
        return fs.sets.WeightedL1Box(weights, 0.5 + jnp.mean(obs.astype(jnp.float32)) / 255, 1.0)

    monkeypatch.setattr("feasible.catalogue.registry.TASKS", TASKS.copy())
    task = fs.Task("car", "CarRacing-v3", gently)
    env = task.env(on_infeasible="project")
    obs, _ = env.reset(seed=0)
    _, *_, info = env.step(np.array([-1.0, 1.0, 0.0], np.float32))
    assert np.abs(info["executed_action"]).sum() == pytest.approx(0.5 + obs.mean() / 255, abs=1e-4)
    with pytest.raises(
        ValueError, match=r"^env: obs is an image, Box\(0, 255, \(96, 96, 3\), uint8\), but networks here"
    ):
        fs.NFWPO(env)
    with pytest.raises(ValueError, match=r"^env: obs is an image"):
        fs.train(task, "nfwpo")
    env.close()


def test_what_goes_wrong_in_a_task_is_said() -> None:
    def broken() -> gym.Env:
        raise OSError("no such boat")

    with pytest.raises(ValueError, match="the environment of 'boat' could not be made: OSError: no such boat"):
        fs.Task("boat", broken, force).env()

    def quietly() -> gym.Env:
        raise AssertionError

    with pytest.raises(ValueError, match=r"could not be made: AssertionError in .*test_own_tasks.py, line \d+\.$"):
        fs.Task("boat", quietly, force).env()
    with pytest.raises(ValueError, match="make of 'boat' must return a Gymnasium environment, not 3"):
        fs.Task("boat", lambda: 3, force).env()  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="'boat' has no constraint, and its environment brings none"):
        fs.Task("boat", Drift).copies(2)
    with pytest.raises(ValueError, match="sets have dim 3, but the action space has 2"):
        fs.Task("boat", Drift, lambda obs: fs.sets.Ball(jnp.zeros(3), 1.0)).env()


DRIFT = "toy/PlainDrift-v0"
gym.register(DRIFT, entry_point=Drift)  # pyright: ignore[reportArgumentType]
