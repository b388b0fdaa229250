"""The paper's task of routing in a packet network."""

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


TASKS = (
    Task(
        name="nsfnet",
        make="feasible/NSFNet-v0",
        title="rates of 3 flows over 9 paths of the NSFNET backbone",
        words="a_k >= 0, sum of a_k over the paths k through a link <= 50, for every link",
        steps=500_000,
        eval_every=10_000,
        sizes={"observation_size": 40, "action_size": 9, "episode_length": 1000},
        presets={"paper": _paper, "fair": _fair, "field": _field},
    ),
)
