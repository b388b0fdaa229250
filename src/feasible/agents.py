"""Agents: a method bound to your environment, as in `NFWPO(env, seed=0).learn(100_000)`.

Agents take any environment that `feasible.constrain` or `feasible.make` made. They are thin: the algorithm is in
`feasible.algorithms`, the loop in `feasible.run.drive.lone`.
"""

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias, Unpack, cast, overload

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces.utils import flatdim
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from jaxtyping import Array, PyTree
from numpy.typing import ArrayLike, NDArray

from feasible.algorithms.base import Algorithm, Spec
from feasible.algorithms.description import build_algorithm, changed
from feasible.algorithms.settings import (
    ARAMSettings,
    DDPGSettings,
    FOCOPSSettings,
    FrankWolfeSettings,
    PPOSettings,
    ProjectedGradientSettings,
    SACSettings,
    SequentialPPOSettings,
    ThroughProjectionSettings,
    TRPOSettings,
)
from feasible.algorithms.spec import observation_size
from feasible.catalogue.keywords import Documented, parameters
from feasible.catalogue.recommended import ELSEWHERE
from feasible.catalogue.registry import RECOMMENDED, find_method, name_of
from feasible.catalogue.task import Task
from feasible.constraints import ConstrainedEnv, ConstrainedVectorEnv, Judge
from feasible.constraints.memory import RememberActions
from feasible.constraints.observations import MisfitError
from feasible.errors import CannotCopyError
from feasible.run.config import RunConfig
from feasible.run.disk import checkpoint
from feasible.run.drive.lone import Lone
from feasible.run.drive.plant import plant_of
from feasible.run.drive.programs import compiled_policy
from feasible.run.drive.wire import wire_of
from feasible.run.evaluate import Evaluation, evaluate, evaluation_seeds
from feasible.run.export import export_policy
from feasible.run.folder import RunFolder, about_spec
from feasible.run.launch import variant_of
from feasible.run.learning import EVAL_EVERY, Wanted, configured, folder_for, learn
from feasible.run.policy import load_policy, save_policy
from feasible.run.train import Outcome, train_on
from feasible.run.validity import WHOLE, check_whole
from feasible.run.watch import Line, Logged, Watcher, Watchers

Callback = Callable[[int, Mapping[str, float | list[float]], "Agent"], bool | None]
"""Called with (step, metrics, agent) for every line of metrics; returning False ends learning."""

Env: TypeAlias = gym.Env | ConstrainedVectorEnv


class Agent:
    """A policy on an environment: `predict`, `evaluate`, `save`, and `learn` unless it was loaded from a file."""

    def __init__(
        self,
        env: gym.Env | ConstrainedVectorEnv,
        algorithm: Algorithm,
        seed: int,
        policy: PyTree[Array] | None = None,
    ):
        self.env, self.algorithm, self.seed = env, algorithm, check_whole("seed", seed, *WHOLE["seed"])
        self._spec, self._loaded = _spec(env), policy
        self._act = compiled_policy(algorithm, self._spec)
        self._driver = Lone(algorithm, plant_of(env), self.seed) if policy is None else None
        self._run: Path | None = None
        self._method: str = getattr(type(self), "method", "")
        """The method's name in the catalogue, where it has one."""
        self._settings: Mapping[str, object] = {}
        """What was changed of the method's defaults."""
        self.metrics: Line = {}
        """The last line of metrics of `learn`."""

    @property
    def step(self) -> int:
        """Environment steps made so far."""
        return self._driver.step if self._driver is not None else 0

    @property
    def policy(self) -> PyTree[Array]:
        """The current parameters of the policy, as a copy."""
        return jax.tree.map(jnp.copy, self._policy)

    @property
    def _policy(self) -> PyTree[Array]:
        """The same without a copy: learning takes its memory over."""
        if self._driver is None:
            return self._loaded
        if not self._driver.started:
            return self._initial
        return self._driver.policy

    @functools.cached_property
    def _initial(self) -> PyTree[Array]:
        """The policy that learning will start from, known before the environment is touched."""
        assert self._driver is not None
        programs = self._driver.programs
        leaves, _ = programs.first(jax.random.key(self.seed), np.zeros(programs.obs, np.float32))
        return self.algorithm.policy(programs.carry(leaves).algorithm)

    def learn(
        self,
        steps: int,
        *,
        progress_bar: bool = False,
        eval_every: int | None = None,
        episodes: int = 10,
        callback: "Callback | None" = None,
        run: str | Path | None = None,
        checkpoint_every: int = 10_000,
        tensorboard: bool = False,
    ) -> "Agent":
        """Train for `steps` more environment steps. Every executed action lies in its feasible set.

        Every `eval_every` steps the policy plays `episodes` episodes in copies of the environment. `callback(step,
        metrics, agent)` is called for every line of metrics (`agent.metrics` is the last); if it returns False,
        learning ends. `run=` names a folder and writes the same files as the command line: settings, metrics,
        checkpoints and the policy. `feasible.resume(run, env)` then continues after a crash, and `feasible report`
        draws the curves.

        Learning steps the environment, so reset it before you step it yourself. If you do so between two calls,
        the second begins a new episode. Ctrl-C takes effect after the current step; you can still use the agent and
        train it further.
        """
        driver = self._driver
        if driver is None:
            raise ValueError("learn: an agent that was loaded from a file holds its policy only; train a new one.")
        steps = check_whole("steps", steps, 0, WHOLE["steps"][1])
        copies = self.algorithm.environments
        if steps % copies:
            raise ValueError(f"learn: steps must be a multiple of the {copies} copies of the environment, not {steps}.")
        if steps == 0:
            if not driver.started:
                driver.start()
            return self
        episodes = check_whole("episodes", episodes, *WHOLE["episodes"])
        checkpoint_every = check_whole("checkpoint_every", checkpoint_every, *WHOLE["checkpoint_every"])
        if eval_every is not None:
            every = check_whole("eval_every", eval_every, *WHOLE["eval_every"])
        else:
            every = None if run is None else max(1, EVAL_EVERY // copies) * copies
        wanted = Wanted(
            driver.step + steps,
            every,
            episodes,
            -(-checkpoint_every // copies) * copies,
            None if run is None else Path(run).resolve(),
        )
        task, algo, variant, about = self._name()
        config = configured(driver, wanted, task, algo, variant)
        listening = Listening(self, driver, callback)
        with Watchers([listening, *_shown(progress_bar, tensorboard, wanted.run)]) as watchers:
            env = self._copies_for(episodes, asked=eval_every is not None) if wanted.eval_every is not None else None
            folder = None
            if wanted.run is not None:
                folder = folder_for(config, wanted.run, about, driver, again=self._run == wanted.run)
                self._run = wanted.run
            return self._trained(lambda: learn(driver, config, folder, env, watchers), listening, env)

    def _trained(
        self, training: Callable[[], Outcome], listening: "Listening", env: ConstrainedVectorEnv | None
    ) -> "Agent":
        """The agent after some training; Ctrl-C raises, a callback that stops does not."""
        driver = self._driver
        assert driver is not None
        try:
            outcome = training()
            interrupted = driver.halted and not listening.stopped and not outcome.finished
        finally:
            driver.halted = False
            if env is not None:
                env.close()
        if interrupted:
            raise KeyboardInterrupt
        return self

    def _copies_for(self, episodes: int, *, asked: bool) -> ConstrainedVectorEnv | None:
        """Copies for evaluations; None where nobody has asked for any and the environment cannot be copied."""
        try:
            return self._episodes(episodes)
        except CannotCopyError as cause:
            if asked:
                raise CannotCopyError(
                    "eval_every: the environment cannot be copied for evaluations, since Gymnasium does not know how "
                    "it was made; register it, or make a feasible.Task of a function that makes it."
                ) from cause
            return None

    def predict(self, obs: ArrayLike | Mapping[str, Any] | tuple[Any, ...]) -> NDArray[np.float32]:
        """Return the feasible action for an observation, or actions for a batch, without exploration.

        Pass an observation of a Dict or Tuple space as the environment gives it, or flat as `env.layout.flat` makes it.
        """
        rows = self._rows(obs)
        single = rows.ndim == 1
        if rows.shape[-1:] != (self._spec.observation_size,) or rows.ndim > 2:
            raise ValueError(
                f"predict: observations have {self._spec.observation_size} entries, got shape {rows.shape}."
            )
        if not np.isfinite(rows).all():
            raise ValueError("predict: the observation has a NaN or an infinite entry.")
        batch = rows[None] if single else rows
        answers = np.array(self._act(self._policy, batch))  # the caller's own, to write to
        wire = wire_of(self._spec)
        actions, (violations, tolerances) = wire.executed(answers), wire.certificate(answers)
        refused = np.flatnonzero(~(violations <= tolerances))
        if len(refused):
            judge = Judge(self._spec.constraint, "raise", batched=False)
            raise judge.explain(batch[refused[0]], actions[refused[0]], " of predict")
        return actions[0] if single else actions

    def _rows(self, obs: Any) -> NDArray[np.float32]:
        """The vector of an observation, or rows of them."""
        if self._spec.layout is None:
            try:
                return np.asarray(obs, np.float32)
            except (TypeError, ValueError):
                raise ValueError(
                    f"predict: observations must be {self._spec.observation_size} numbers, or rows of them, not "
                    f"{obs!r:.80}."
                ) from None
        try:
            return self._spec.layout.read(obs)
        except MisfitError as misfit:
            raise ValueError(f"predict: {misfit}.") from None

    def evaluate(
        self, episodes: int = 10, *, seed: int = 0, env: "gym.Env | Callable[[], gym.Env] | None" = None
    ) -> Evaluation:
        """Play whole episodes without exploration, in copies of the environment with other seeds than training.

        `env` replaces the agent's environment: pass an environment, or a function that makes one.
        """
        episodes = check_whole("evaluate: episodes", episodes, *WHOLE["episodes"])
        seed = check_whole("evaluate: seed", seed, *WHOLE["seed"])
        copies = self._episodes(episodes, env)
        try:
            return evaluate(self._act, self._policy, copies, evaluation_seeds(seed, self.step, episodes))
        finally:
            copies.close()

    def __repr__(self) -> str:
        """Such as `NFWPO on Pendulum-v1, seed 0, step 12,000`."""
        rule = getattr(self.algorithm, "rule", None)
        factors = type(self.algorithm).__name__ + (f" with {type(rule).__name__}" if rule is not None else "")
        kind = type(self).__name__ if isinstance(self, _Named) else factors
        since = f"seed {self.seed}, step {self.step:,}" if self._driver is not None else "loaded from a file"
        return f"{kind} on {_named(self.env)}, {since}"

    def _episodes(self, episodes: int, env: "gym.Env | Callable[[], gym.Env] | None" = None) -> ConstrainedVectorEnv:
        """Copies to play episodes in. The policy judges its actions by its own constraint, and copies of another
        environment also by theirs."""
        make = _copier(self.env if env is None else env)
        makers = [(lambda: cast(ConstrainedEnv, make()).env) if env is None else make] * episodes
        copies = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)
        try:
            if env is not None:
                _check_sizes(self._spec, copies)
            return ConstrainedVectorEnv(copies, self._spec.constraint)
        except BaseException:
            copies.close()
            raise

    def _name(self) -> tuple[str, str, str, dict[str, object]]:
        """Of the task, the method and the variant, for a run's folder, and what is known of the task."""
        task, about = getattr(self.env, "task", None), about_spec(self._spec)
        name, settings = re.sub(r"[^\w.+-]+", "-", _kind(self.env)), dict(self._settings)
        if isinstance(self.env, ConstrainedVectorEnv):
            settings["copies"] = self.env.num_envs
        if isinstance(task, Task) and not getattr(self.env, "task_options", None):
            name = name_of(task) or task.name
            about |= {"title": task.title, "constraint": task.words}
        return name, self._method or type(self.algorithm).__name__.lower(), variant_of("", settings), about

    def save(self, path: str | Path) -> None:
        """Write the policy to a file: weights and a description, without code and without the constraint."""
        save_policy(Path(path), self.algorithm, self._spec, self._policy)

    def export(self, path: str | Path) -> None:
        """Write the policy with its constraint as a program that runs without this library (`feasible.run.export`)."""
        export_policy(Path(path), self.algorithm, self._spec, self._policy)


@overload
def agent(method: Literal["recommended"], env: Env, *, seed: int = 0, **settings: Unpack[DDPGSettings]) -> Agent: ...
@overload
def agent(
    method: Literal["nfwpo", "td3-nfwpo"], env: Env, *, seed: int = 0, **settings: Unpack[FrankWolfeSettings]
) -> Agent: ...
@overload
def agent(
    method: Literal["ddpg-projection", "ddpg-shaping", "td3-projection", "td3-proposed", "td3-alpha", "td3-radial"],
    env: Env,
    *,
    seed: int = 0,
    **settings: Unpack[DDPGSettings],
) -> Agent: ...
@overload
def agent(
    method: Literal["ddpg-optlayer", "td3-optlayer"],
    env: Env,
    *,
    seed: int = 0,
    **settings: Unpack[ThroughProjectionSettings],
) -> Agent: ...
@overload
def agent(
    method: Literal["projected-gradient", "td3-projected-gradient"],
    env: Env,
    *,
    seed: int = 0,
    **settings: Unpack[ProjectedGradientSettings],
) -> Agent: ...
@overload
def agent(
    method: Literal["sac-projection", "sac-proposed", "sac-alpha", "sac-radial", "sac-truncated"],
    env: Env,
    *,
    seed: int = 0,
    **settings: Unpack[SACSettings],
) -> Agent: ...
@overload
def agent(
    method: Literal["ppo-sequential"], env: Env, *, seed: int = 0, **settings: Unpack[SequentialPPOSettings]
) -> Agent: ...
@overload
def agent(method: Literal["aram"], env: Env, *, seed: int = 0, **settings: Unpack[ARAMSettings]) -> Agent: ...
@overload
def agent(
    method: Literal["ppo-projection", "ppo-radial", "ppo-truncated", "ppo-capg"],
    env: Env,
    *,
    seed: int = 0,
    **settings: Unpack[PPOSettings],
) -> Agent: ...
@overload
def agent(
    method: Literal["trpo-projection", "trpo-capg"], env: Env, *, seed: int = 0, **settings: Unpack[TRPOSettings]
) -> Agent: ...
@overload
def agent(
    method: Literal["focops-projection"], env: Env, *, seed: int = 0, **settings: Unpack[FOCOPSSettings]
) -> Agent: ...
@overload
def agent(method: str, env: Env, *, seed: int = 0, **settings: object) -> Agent: ...
def agent(method: str, env: Env, *, seed: int = 0, **settings: object) -> Agent:
    """Return the agent of any built-in method (`feasible algos`); keywords override its hyper-parameters.

    >>> agent("nfwpo", feasible.make("reacher"), seed=0, batch_size=32).learn(50_000)

    "recommended" is the one method, in the one setting, that we recommend on any environment (`docs/recommended.md`):
    "td3-radial", which learns after a warm-up of 10,000 steps.
    """
    if method == RECOMMENDED:
        method, settings = ELSEWHERE.algo, {**ELSEWHERE.changes, **settings}
    made = Agent(env, _algorithm(method, env, settings, method), seed)
    made._method, made._settings = method, settings
    return made


def _algorithm(method: str, env: Env, settings: Mapping[str, object], owner: str) -> Algorithm:
    """The method's defaults on the environment, changed by the settings; `owner` is whose an error says they are."""
    default = find_method(method).make(_spec(env))
    copies = {"copies": env.num_envs} if isinstance(env, ConstrainedVectorEnv) else {}
    return changed(default, {**copies, **settings}, owner)


class _Named(Agent):
    """A method of the catalogue by a name of its own; `help` shows its settings as they are."""

    method: ClassVar[str]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "method" not in vars(cls):  # a class of a user's, derived from one of ours
            return
        method, given = find_method(cls.method), inspect.signature(cls.__init__)
        fixed = [p for p in given.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        cls.__init__.__signature__ = given.replace(parameters=[*fixed, *parameters(method)])
        cls.__doc__ = Documented(method, cls.__doc__ or "")  # pyright: ignore[reportAttributeAccessIssue] -- a text when read

    def __init__(self, env: Env, seed: int, settings: Mapping[str, object]):
        super().__init__(env, _algorithm(self.method, env, settings, type(self).__name__), seed)
        self._settings = settings


class NFWPO(_Named):
    """Neural Frank-Wolfe policy optimisation: regression to feasible reference actions (Algorithm 2 of the paper).

    >>> agent = NFWPO(feasible.make("reacher"), seed=0, frank_wolfe_step=0.05)
    >>> agent.learn(50_000, progress_bar=True).evaluate().mean

    `twin` and `target_noise` come from TD3. Takes one environment, or a vector of `copies` environments that step
    together; step numbers count the steps of all of them.
    """

    method = "nfwpo"

    def __init__(self, env: Env, *, seed: int = 0, **settings: Unpack[FrankWolfeSettings]):
        super().__init__(env, seed, settings)


class DDPGProjection(_Named):
    """DDPG whose proposals are projected before they are executed."""

    method = "ddpg-projection"

    def __init__(self, env: Env, *, seed: int = 0, **settings: Unpack[DDPGSettings]):
        super().__init__(env, seed, settings)


class DDPGShaping(_Named):
    """DDPG with projection, and with `shaping` times the distance to the projection subtracted from the reward."""

    method = "ddpg-shaping"

    def __init__(self, env: Env, *, seed: int = 0, **settings: Unpack[DDPGSettings]):
        super().__init__(env, seed, settings)


class DDPGOptLayer(_Named):
    """DDPG with the projection as the actor's last layer, differentiated exactly."""

    method = "ddpg-optlayer"

    def __init__(self, env: Env, *, seed: int = 0, **settings: Unpack[ThroughProjectionSettings]):
        super().__init__(env, seed, settings)


class ProjectedGradient(_Named):
    """Regression to feasible reference actions found by a projected gradient step on the critic."""

    method = "projected-gradient"

    def __init__(self, env: Env, *, seed: int = 0, **settings: Unpack[ProjectedGradientSettings]):
        super().__init__(env, seed, settings)


class TD3(_Named):
    """TD3 whose proposals are projected before they are executed: twin critics, smoothed targets, a delayed actor.

    With `map="radial"` or `"alpha"` and `output="linear"`, the proposals themselves are feasible. With
    `critic_at="proposed"`, the critic values proposals, which the environment repairs.
    """

    method = "td3-projection"

    def __init__(self, env: Env, *, seed: int = 0, **settings: Unpack[DDPGSettings]):
        super().__init__(env, seed, settings)


class SAC(_Named):
    """Soft actor-critic whose samples are projected before they are executed."""

    method = "sac-projection"

    def __init__(self, env: Env, *, seed: int = 0, **settings: Unpack[SACSettings]):
        super().__init__(env, seed, settings)


class PPO(_Named):
    """Proximal policy optimisation whose samples are projected before they are executed.

    >>> agent = PPO(feasible.make_vec("reacher", 8), seed=0)
    >>> agent.learn(100_000)

    Takes one environment or copies of one that step together.
    """

    method = "ppo-projection"

    def __init__(self, env: Env, *, seed: int = 0, **settings: Unpack[PPOSettings]):
        super().__init__(env, seed, settings)


class TRPO(_Named):
    """Trust-region policy optimisation whose samples are projected before they are executed.

    Takes one environment or copies of one that step together.
    """

    method = "trpo-projection"

    def __init__(self, env: Env, *, seed: int = 0, **settings: Unpack[TRPOSettings]):
        super().__init__(env, seed, settings)


class FOCOPS(_Named):
    """First-order constrained policy optimisation with projection and a discounted cost for infeasible proposals.

    Takes one environment or copies of one that step together.
    """

    method = "focops-projection"

    def __init__(self, env: Env, *, seed: int = 0, **settings: Unpack[FOCOPSSettings]):
        super().__init__(env, seed, settings)


class Listening(Watcher):
    """Keeps an agent's last metrics, and hands them to a callback that may end the learning."""

    def __init__(self, agent: Agent, driver: Lone, callback: Callback | None):
        self._agent, self._driver, self._callback, self.stopped = agent, driver, callback, False

    def logged(self, config: RunConfig, line: Line) -> None:
        self._agent.metrics = line
        if self._callback is not None and self._callback(int(line["step"]), line, self._agent) is False:  # pyright: ignore[reportArgumentType]
            self.stopped = self._driver.halted = True


def _shown(progress_bar: bool, tensorboard: bool, run: Path | None) -> list[Watcher]:
    shown: list[Watcher] = []
    if tensorboard:
        from feasible.run.tensorboard import EventFiles

        if run is None:
            raise ValueError("learn: tensorboard writes into the run's folder; name one with run=.")
        shown.append(EventFiles(run))
    if progress_bar:
        from rich.console import Console

        from feasible.run.progress import ProgressBar

        shown.append(ProgressBar(Console()))
    else:
        shown.append(Logged())
    return shown


def resume(
    path: str | Path,
    env: gym.Env | ConstrainedVectorEnv,
    *,
    progress_bar: bool = False,
    callback: Callback | None = None,
    tensorboard: bool = False,
) -> Agent:
    """Continue the run of a folder from its last checkpoint to its end, and return the agent.

    On the same machine it ends bit for bit as if it had never been stopped, if the environment can be saved or follows
    its seeds. If the run had finished, the agent holds its policy only.
    """
    folder = RunFolder(Path(path))
    config = folder.config(named=False)
    saved = checkpoint.read(folder.checkpoint)
    if saved is not None and saved.finished:
        return load(folder.policy, env)  # pyright: ignore[reportArgumentType]
    agent = Agent(env, build_algorithm(config.algorithm), config.seed)
    driver = agent._driver
    assert driver is not None
    agent._method, agent._run = config.algo, folder.path.resolve()
    listening = Listening(agent, driver, callback)
    with folder.locked(), Watchers([listening, *_shown(progress_bar, tensorboard, folder.path)]) as watchers:
        copies = agent._copies_for(config.episodes, asked=False)
        return agent._trained(lambda: train_on(folder, config, driver, copies, watchers), listening, copies)


def load(path: str | Path, env: gym.Env) -> Agent:
    """Load a policy file as an agent. The constraint comes from the environment; no code from the file runs."""
    algorithm, policy = load_policy(Path(path), _spec(env))
    return Agent(env, algorithm, 0, policy)


def _spec(env: gym.Env | ConstrainedVectorEnv) -> Spec:
    """What a method's defaults depend on."""
    return plant_of(env).spec


def _check_sizes(own: Spec, env: VectorEnv) -> None:
    """Refuse an environment whose observations or actions have another number of entries than the agent's."""
    observation, action = observation_size(env.single_observation_space), flatdim(env.single_action_space)
    sizes = ("observations", own.observation_size, observation), ("actions", own.action_size, action)
    for what, here, there in sizes:
        if here != there:
            raise ValueError(
                f"evaluate: the {what} of env have {there} entries, those of the agent {here}; pass an environment of "
                "the kind that it was made for."
            )


def _named(env: Env) -> str:
    """What an environment is called."""
    return f"{env.num_envs} copies of {_kind(env)}" if isinstance(env, ConstrainedVectorEnv) else _kind(env)


def _kind(env: Env) -> str:
    """What one of its copies is called."""
    singles = getattr(env.unwrapped, "envs", None) if isinstance(env, ConstrainedVectorEnv) else None
    single = singles[0] if singles and env.spec is None else env
    return single.spec.id if single.spec is not None else type(single.unwrapped).__name__


def _copier(env: "gym.Env | VectorEnv | Callable[[], gym.Env]") -> Callable[[], gym.Env]:
    """A function that makes the environment, or a single one of a vector, anew."""
    task = getattr(env, "task", None)
    if isinstance(task, Task):
        return functools.partial(task.env, **getattr(env, "task_options", {}))
    make = _copy_maker(env.env) if isinstance(env, ConstrainedVectorEnv) else None
    if make is not None:
        return lambda: gym.Wrapper(make())  # instead of the judging wrapper, which is taken off
    if isinstance(env, VectorEnv):
        raise CannotCopyError(
            "evaluate: the agent's environment is a vector that does not say how its copies are made; pass a function "
            "that makes one, as evaluate(env=lambda: ...)."
        )
    if not isinstance(env, gym.Env):
        return functools.partial(_checked, env)
    spec = env.spec
    if spec is None or not _remakes(env):
        raise CannotCopyError(
            "evaluate: the environment cannot be copied, since Gymnasium does not know how it was made; pass a "
            "function that makes it, as evaluate(env=lambda: ...)."
        )
    return lambda: gym.make(spec)


def _checked(make: Callable[[], gym.Env]) -> gym.Env:
    """What a function that was passed makes, or a sentence if it is no environment."""
    env = make() if callable(make) else make
    if not isinstance(env, gym.Env):
        raise ValueError(
            f"evaluate: env must be a Gymnasium environment, or a function that makes one, not {env!r:.80}."
        )
    return env


def _copy_maker(env: VectorEnv) -> Callable[[], gym.Env] | None:
    """A function that makes one of the copies of a vector, where it says how they are made."""
    if isinstance(env, SyncVectorEnv | AsyncVectorEnv):
        return env.env_fns[0]
    make = _copy_maker(env.env) if isinstance(env, RememberActions) else None
    return None if make is None else lambda: cast(RememberActions, env).alone(make())


def _remakes(env: gym.Env) -> bool:
    """Whether Gymnasium has recorded how every wrapper was made."""
    while isinstance(env, gym.Wrapper):
        if not isinstance(env, RecordConstructorArgs) and not type(env).__module__.startswith("gymnasium."):
            return False
        env = env.env
    return True
