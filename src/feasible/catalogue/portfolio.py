"""The weights of a portfolio."""

from feasible.catalogue.task import Task

TASKS = (
    Task(
        name="portfolio",
        make="feasible/Portfolio-v0",
        title="13 assets over 12 months, a limit on what is traded",
        words="0 <= a_i <= 0.25 (or w_i, if larger), sum a_i = 1, sum |a_i - w_i| <= 0.2, w_i the weights now "
        "(observation 0 to 12)",
        steps=150_000,
        eval_every=5_000,
        episodes=50,
        sizes={"observation_size": 27, "action_size": 13, "episode_length": 12},
    ),
)
