"""Routing in a packet network: the paper's task, the same with corrected rules, and one of 20 paths."""

from typing import TYPE_CHECKING

from feasible.catalogue.task import Task

if TYPE_CHECKING:
    from feasible.catalogue.presets import Algorithms


def _paper() -> "Algorithms":
    from feasible.catalogue.presets import table_3

    return table_3(frank_wolfe_step=0.05, shaping=1 / 4, noise=3.0, replay_size=50_000, interval=50, sac_batch_size=16)


def _fair() -> "Algorithms":
    from feasible.catalogue.presets import fair

    return fair(_paper())


def _field() -> "Algorithms":
    from feasible.catalogue.other_suites import aram, sequential

    return {"aram": aram(steps=500_000, reward_scale=10.0), "ppo-sequential": sequential()}


def _field_20() -> "Algorithms":
    from feasible.catalogue.other_suites import aram

    return {"aram": aram(steps=1_500_000, reward_scale=10.0)}


_WORDS = "a_k >= 0, sum of a_k over the paths k through a link <= 50, for every link"
TASKS = (
    Task(
        name="nsfnet",
        make="feasible/NSFNet-v0",
        title="rates of 3 flows over 9 paths of the NSFNET backbone",
        words=_WORDS,
        steps=500_000,
        eval_every=10_000,
        sizes={"observation_size": 40, "action_size": 9, "episode_length": 1000},
        presets={"paper": _paper, "fair": _fair, "field": _field},
    ),
    Task(
        name="nsfnet-corrected",
        make="feasible/NSFNet-v0",
        title="3 flows over 9 paths, with rules as the model evidently meant them",
        words=_WORDS,
        steps=500_000,
        eval_every=10_000,
        sizes={"observation_size": 40, "action_size": 9, "episode_length": 1000},
        options={"rules": "corrected"},
    ),
    Task(
        name="nsfnet-20",
        make="feasible/NSFNet-v0",
        title="rates of 5 flows over 20 paths of the NSFNET backbone",
        words=_WORDS,
        steps=1_500_000,
        eval_every=10_000,
        sizes={"observation_size": 40, "action_size": 20, "episode_length": 1000},
        options={"topology": "nsfnet-20", "highest_rate": 50.0},
        presets={"field": _field_20},
    ),
)
