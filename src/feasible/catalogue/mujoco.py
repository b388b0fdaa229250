"""The paper's tasks of robots."""

from dataclasses import replace
from typing import TYPE_CHECKING

from feasible.catalogue.task import Task

if TYPE_CHECKING:
    from feasible.catalogue.presets import Algorithms


def _reacher_paper() -> "Algorithms":
    from feasible.algorithms.focops import FOCOPS
    from feasible.catalogue.presets import table_3

    column = table_3(frank_wolfe_step=0.05, shaping=1 / 7, noise=0.1, warmup=1_000, replay_size=10_000, output="tanh")
    return {**column, "focops-projection": FOCOPS(horizon=64, multiplier_rate=0.01)}


def _reacher_fair() -> "Algorithms":
    from feasible.catalogue.presets import fair

    return fair(_reacher_paper())


def _cheetah_paper() -> "Algorithms":
    from feasible.catalogue.presets import table_3

    return table_3(frank_wolfe_step=0.01, shaping=3.0, noise=0.1, output="tanh")


def _cheetah_fair() -> "Algorithms":
    from feasible.catalogue.presets import fair

    return fair(_cheetah_paper())


def _box_paper() -> "Algorithms":
    """HalfCheetah's column, since the tables have none for it, and the two methods of clipped actions."""
    from feasible.algorithms.ppo import PPO
    from feasible.algorithms.trpo import TRPO

    return {**_cheetah_paper(), "ppo-capg": PPO(capg=True), "trpo-capg": TRPO(capg=True)}


def _box_fair() -> "Algorithms":
    from feasible.catalogue.presets import fair

    return fair(_box_paper())


def _reacher_field() -> "Algorithms":
    from feasible.catalogue.field import reacher_field
    from feasible.catalogue.other_suites import aram

    return {**reacher_field(), "aram": aram(steps=300_000, reward_shift=1.0, warmup=1_000)}


def _cheetah_field() -> "Algorithms":
    from feasible.catalogue.field import field
    from feasible.catalogue.other_suites import aram

    return {**field(frank_wolfe_step=0.01), "aram": aram(steps=700_000)}


_CHEETAH = Task(
    name="halfcheetah",
    make="feasible/HalfCheetah-v0",
    title="a running robot with a limit on the power of its joints",
    words="|a_i| <= 1, sum |a_i w_i| <= 20, w_i the angular velocity of joint i (observation 11 to 16)",
    steps=700_000,
    eval_every=5_000,
    sizes={"observation_size": 17, "action_size": 6, "episode_length": 1000},
    presets={"paper": _cheetah_paper, "fair": _cheetah_fair, "field": _cheetah_field},
)
TASKS = (
    Task(
        name="reacher",
        make="feasible/Reacher-v0",
        title="a robot arm with two joints, a limit on its torques",
        words="a_1^2 + a_2^2 <= 0.05",
        steps=300_000,
        eval_every=5_000,
        sizes={"observation_size": 11, "action_size": 2, "episode_length": 50},
        presets={"paper": _reacher_paper, "fair": _reacher_fair, "field": _reacher_field},
    ),
    _CHEETAH,
    replace(
        _CHEETAH,
        name="halfcheetah-box",
        make="feasible/HalfCheetahBox-v0",
        title="the same robot with the bounds of its actions only",
        words="|a_i| <= 1",
        presets={"paper": _box_paper, "fair": _box_fair, "field": _cheetah_field},
    ),
)
