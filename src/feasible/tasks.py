"""The paper's tasks by name: environment, constraint in words, and the settings of its experiments as plain data.

Settings are those of the paper's text and of its Tables 3 and 4; where these are silent, those of the authors'
code. Where the two differ, the text counts.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import gymnasium

from feasible.settings import ROLLOUTS, Preset, Settings, TableShape, off_policy, on_policy, tabular

if TYPE_CHECKING:
    from feasible.constraints import ConstrainedEnv, ConstrainedVectorEnv, OnInfeasible


@dataclass(frozen=True)
class Task:
    """An environment with its constraint, under the name by which people and runs know it."""

    name: str
    title: str
    env_id: str
    options: Mapping[str, int]
    constraint: str
    observation_size: int
    action_size: int
    episode_length: int
    paper: Settings
    fair_network: Mapping[str, str] = field(default_factory=lambda: {"actor_output": "tanh"})
    """What the fair settings change in the networks, where the text's own do not learn (NSFNET, BSS-5)."""

    @property
    def fair(self) -> Settings:
        """Every method of the task alike: batch 64, actor and critic updated together, the same sizes and activations.

        SAC keeps its own learning rate, target ratio and critics, which take the action at their first layer. PPO, TRPO
        and FOCOPS keep networks of two layers of 64, and learn from rollouts of the same length with the same traces.

        Networks start with target networks that are copies, and the warm-up is the same, in both presets.
        """
        if self.paper.actor_output == "table":
            return self.paper  # Table 4 treats its methods alike
        every = self.paper.critic_interval
        return replace(
            self.paper,
            batch_size=dict.fromkeys(self.paper.batch_size, 64),
            horizon=on_policy(2_048, 2_048, 2_048),
            rollout_discount=on_policy(self.paper.discount, self.paper.discount, self.paper.discount),
            trace=on_policy(0.95, 0.95, 0.95),
            actor_interval=off_policy(every, optlayer=every, nfwpo=every, sac=every),
            sac_warmup_steps=self.paper.warmup_steps,
            sac_learning_starts=self.paper.warmup_steps,
            sac_updates=1,
            **self.fair_network,
        )

    def settings(self, preset: Preset) -> Settings:
        if preset not in ("paper", "fair"):
            raise ValueError(f"settings must be 'paper' or 'fair', not {preset!r}.")
        return self.paper if preset == "paper" else self.fair


_HALFCHEETAH = Settings(
    training_steps=700_000,
    warmup_steps=10_000,
    evaluation_interval=5_000,
    replay_size=1_000_000,
    frank_wolfe_step=0.01,
    shaping_weight=3.0,
    noise=0.1,
    actor_output="tanh",
)

_TASKS = (
    Task(
        name="bss-3",
        title="90 bikes at 3 stations, tabular policies",
        env_id="feasible/BikeSharing-v0",
        options={"stations": 3},
        constraint="a integer, 0 <= a_i <= 35, sum a_i = 90",
        observation_size=7,
        action_size=3,
        episode_length=100,
        paper=Settings(
            training_steps=1_000_000,
            warmup_steps=10_000,
            evaluation_interval=5_000,
            replay_size=10_000,
            frank_wolfe_step=0.05,
            shaping_weight=1.0,
            noise=None,
            epsilon=0.1,
            discount=0.9,
            actor_learning_rate=1e-3,
            critic_learning_rate=2e-3,
            target_ratio=0.01,
            target_table_interval=100,
            batch_size=tabular(64),
            # The authors' code updates the critic every 25 steps and the table every 50; the text names no such
            # exception for this task.
            actor_interval=tabular(1),
            hidden_layers=(30,),
            actor_output="table",
            table=TableShape(stations=3, bikes=90, low=20, high=35),
        ),
    ),
    Task(
        name="bss-5",
        title="150 bikes at 5 stations",
        env_id="feasible/BikeSharing-v0",
        options={"stations": 5},
        constraint="a integer, 0 <= a_i <= 35, sum a_i = 150",
        observation_size=11,
        action_size=5,
        episode_length=100,
        paper=Settings(
            training_steps=100_000,
            warmup_steps=10_000,
            evaluation_interval=5_000,
            replay_size=1_000_000,
            frank_wolfe_step=0.05,
            shaping_weight=4.0,
            noise=5.0,
        ),
        # Of the authors' NFWPO. A ReLU at the output is dead for most states, a tanh saturates: observations of
        # up to 100 are not scaled.
        fair_network={"actor_output": "leaky_relu", "hidden_activation": "leaky_relu"},
    ),
    Task(
        name="nsfnet",
        title="rates of 3 flows over 9 paths of the NSFNET backbone",
        env_id="feasible/NSFNet-v0",
        options={},
        constraint="a_k >= 0, sum of a_k over the paths k through a link <= 50, for every link",
        observation_size=40,
        action_size=9,
        episode_length=1000,
        paper=Settings(
            training_steps=500_000,
            warmup_steps=10_000,
            evaluation_interval=10_000,
            replay_size=50_000,
            frank_wolfe_step=0.05,
            shaping_weight=1 / 4,
            noise=3.0,
            actor_interval=off_policy(50, optlayer=50, nfwpo=50, sac=50),
            batch_size={**off_policy(64, optlayer=16, nfwpo=16, sac=16), **ROLLOUTS},
            critic_interval=50,
        ),
    ),
    Task(
        name="reacher",
        title="a robot arm with two joints, a limit on its torques",
        env_id="feasible/Reacher-v0",
        options={},
        constraint="a_1^2 + a_2^2 <= 0.05",
        observation_size=11,
        action_size=2,
        episode_length=50,
        paper=Settings(
            training_steps=300_000,
            warmup_steps=1_000,
            evaluation_interval=5_000,
            replay_size=10_000,
            frank_wolfe_step=0.05,
            shaping_weight=1 / 7,
            noise=0.1,
            actor_output="tanh",
            horizon=on_policy(2_048, 5_000, 64),
            multiplier_rate=0.01,
        ),
    ),
    Task(
        name="halfcheetah",
        title="a running robot with a limit on the power of its joints",
        env_id="feasible/HalfCheetah-v0",
        options={},
        constraint="|a_i| <= 1, sum |a_i w_i| <= 20, w_i the angular velocity of joint i (observation 11 to 16)",
        observation_size=17,
        action_size=6,
        episode_length=1000,
        paper=_HALFCHEETAH,
    ),
    Task(
        name="halfcheetah-box",
        title="the same robot with the bounds of its actions only",
        env_id="feasible/HalfCheetahBox-v0",
        options={},
        constraint="|a_i| <= 1",
        observation_size=17,
        action_size=6,
        episode_length=1000,
        # The tables have no column of its own for it. It alone has the two methods of clipped actions.
        paper=replace(_HALFCHEETAH, batch_size={**_HALFCHEETAH.batch_size, "ppo-capg": 64, "trpo-capg": 64}),
    ),
)

TASKS: Mapping[str, Task] = {task.name: task for task in _TASKS}


def find_task(name: str) -> Task:
    """The task of that name; for another name an error that says which one may be meant."""
    if name in TASKS:
        return TASKS[name]
    near = difflib.get_close_matches(str(name).lower(), TASKS, n=1, cutoff=0.0)[0]
    raise ValueError(f"There is no task {name!r}; did you mean {near!r}? Known tasks: {', '.join(TASKS)}.")


def make(
    name: str, on_infeasible: "OnInfeasible" = "raise", render_mode: str | None = None, **options: object
) -> "ConstrainedEnv":
    """The environment of a task. `options` are those of its environment (`feasible.envs`).

    Stepping it with an action outside the feasible set raises `InfeasibleActionError` and changes nothing;
    `on_infeasible="project"` executes the nearest feasible action instead.
    """
    task = find_task(name)
    settings = {**task.options, "on_infeasible": on_infeasible, "render_mode": render_mode, **options}
    return cast("ConstrainedEnv", gymnasium.make(task.env_id, **settings))


def make_vec(
    name: str, num_envs: int, on_infeasible: "OnInfeasible" = "raise", threads: int = 1, **options: object
) -> "ConstrainedVectorEnv":
    """`num_envs` copies of a task's environment that step as one, on `threads` threads.

    Copy i of seed s is `make(name)` seeded s + i; episodes that end start again in the same step.
    """
    task = find_task(name)
    settings = {**task.options, "on_infeasible": on_infeasible, "threads": threads, **options}
    return cast("ConstrainedVectorEnv", gymnasium.make_vec(task.env_id, num_envs, **settings))
