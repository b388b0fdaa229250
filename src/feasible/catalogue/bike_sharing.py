"""Bike sharing: the paper's two tasks, and two of more stations with demand of the same law."""

from typing import TYPE_CHECKING

from feasible.catalogue.task import Task

if TYPE_CHECKING:
    from feasible.catalogue.presets import Algorithms


def _table_4() -> "Algorithms":
    """Table 4, which treats its methods alike."""
    from dataclasses import replace

    from feasible.algorithms.actor_rules import FrankWolfe, PolicyGradient
    from feasible.algorithms.fwpo_critic import BikeTable

    # The authors' code updates the critic every 25 steps and the table every 50; the text names no such exception.
    table = BikeTable(rule=FrankWolfe(0.05), bikes=90, low=20, high=35, critic_interval=1, table_interval=1)
    projected = replace(table, rule=PolicyGradient(), table_rate=1e-3)
    return {"fwpo": table, "tabular-projection": projected, "tabular-shaping": replace(projected, shaping=1.0)}


def _five_paper() -> "Algorithms":
    from feasible.catalogue.presets import table_3

    return table_3(frank_wolfe_step=0.05, shaping=4.0, noise=5.0)


def _five_fair() -> "Algorithms":
    from feasible.catalogue.presets import fair

    # Of the authors' NFWPO. A ReLU at the output is dead for most states, a tanh saturates: observations of up to 100
    # are not scaled.
    return fair(_five_paper(), output="leaky_relu", hidden="leaky_relu")


def _five_field() -> "Algorithms":
    from feasible.catalogue.other_suites import aram, sequential

    return {"aram": aram(steps=100_000, reward_scale=100.0, reward_shift=2.0), "ppo-sequential": sequential()}


TASKS = (
    Task(
        name="bss-3",
        make="feasible/BikeSharing-v0",
        title="90 bikes at 3 stations, tabular policies",
        words="a integer, 0 <= a_i <= 35, sum a_i = 90",
        steps=1_000_000,
        eval_every=5_000,
        sizes={"observation_size": 7, "action_size": 3, "episode_length": 100},
        options={"stations": 3},
        presets={"paper": _table_4, "fair": _table_4},
    ),
    Task(
        name="bss-5",
        make="feasible/BikeSharing-v0",
        title="150 bikes at 5 stations",
        words="a integer, 0 <= a_i <= 35, sum a_i = 150",
        steps=100_000,
        eval_every=5_000,
        sizes={"observation_size": 11, "action_size": 5, "episode_length": 100},
        options={"stations": 5},
        presets={"paper": _five_paper, "fair": _five_fair, "field": _five_field},
    ),
    *(
        Task(
            name=f"bss-{stations}",
            make="feasible/BikeSharing-v0",
            title=f"{30 * stations:,} bikes at {stations} stations on a ring",
            words=f"a integer, 0 <= a_i <= 35, sum a_i = {30 * stations:,}",
            steps=100_000,
            eval_every=5_000,
            sizes={"observation_size": 2 * stations + 1, "action_size": stations, "episode_length": 100},
            options={"stations": stations},
        )
        for stations in (20, 100)
    ),
)
