"""Which departures there are, of which method on which task, and the algorithms and runs that have them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from itertools import product

from feasible.algorithms.actor_rules import ThroughProjection
from feasible.algorithms.base import Algorithm
from feasible.algorithms.ddpg import DDPG
from feasible.algorithms.description import describe
from feasible.algorithms.fwpo_critic import BikeTable
from feasible.catalogue.registry import algorithm_of, find_task
from feasible.paper.as_authors.algorithms import AuthorsDDPG, AuthorsProjection, AuthorsTable
from feasible.run.config import RunConfig
from feasible.run.launch import configure

Change = Callable[[Algorithm], Algorithm]
ALL = "as-authors"
"""The variant with all departures."""


def _set(**changes: object) -> Change:
    return lambda algorithm: replace(algorithm, **changes)


def _set_rule(**changes: object) -> Change:
    return lambda algorithm: replace(algorithm, rule=replace(algorithm.rule, **changes))  # pyright: ignore


@dataclass(frozen=True)
class Departure:
    """One thing that the authors' code does differently, and the (task, algo) that it concerns."""

    says: str
    of: frozenset[tuple[str, str]]
    change: Change


_NFWPO, _OPTLAYER, _PLAIN = ("nfwpo",), ("ddpg-optlayer",), ("ddpg-projection", "ddpg-shaping")
_NEURAL = (*_NFWPO, *_PLAIN, *_OPTLAYER)
_TABULAR = ("fwpo", "tabular-projection", "tabular-shaping")
_CHEETAHS = ("halfcheetah", "halfcheetah-box")
_NETWORKED = ("bss-5", "nsfnet", "reacher", *_CHEETAHS)


def _of(tasks: Iterable[str], algos: Iterable[str]) -> frozenset[tuple[str, str]]:
    return frozenset(product(tasks, algos))


_EVERYWHERE = _of(_NETWORKED, _NEURAL) | _of(["bss-3"], _TABULAR)

DEPARTURES: Mapping[str, Departure] = {
    "targets-apart": Departure(
        "target networks start at random values of their own, not as copies", _EVERYWHERE, _set(targets_apart=True)
    ),
    "zero-row": Departure(
        "batches may hold the next, still all-zero row of a replay that is not full", _EVERYWHERE, _set(zero_row=True)
    ),
    "two-batches": Departure(
        "actor and critic learn from two batches", _of(_NETWORKED, _NFWPO), _set(batches_apart=True)
    ),
    "mean-loss": Departure(
        "the actor's loss is a mean over action entries too (felt through Adam's epsilon only)",
        _of(_NETWORKED, _NFWPO),
        _set(loss_over_entries=True),
    ),
    "limit-terminal": Departure(
        "from the second episode on, time limits are stored as terminations",
        _of(["halfcheetah"], _PLAIN) | _of(["reacher"], _OPTLAYER),
        _set(limits_terminate=True),
    ),
    "noise-clipped": Departure(
        "the noise is clipped to the box, the proposal is not",
        _of(_CHEETAHS, _NEURAL),
        _set(noise_clipped_alone=True),
    ),
    "mirrored": Departure(
        "training projects minus the actor's output, acting projects plus",
        _of(["bss-5", "nsfnet"], _OPTLAYER),
        _set_rule(mirrored=True),
    ),
    "integer-target": Departure(
        "the action in the critic's target is rounded to whole bikes",
        _of(["bss-5"], _OPTLAYER),
        _set_rule(executed_target=True),
    ),
    "leaky-hidden": Departure(
        "hidden layers have leaky ReLUs of slope 0.2",
        _of(["bss-5"], _NEURAL),
        _set(actor_hidden="leaky_relu", critic_hidden="leaky_relu"),
    ),
    "leaky-actor": Departure(
        "the actor's hidden layers have leaky ReLUs of slope 0.2",
        _of(["nsfnet"], _NEURAL),
        _set(actor_hidden="leaky_relu"),
    ),
    "leaky-output": Departure(
        "the actor's output is a leaky ReLU of slope 0.2, unbounded",
        _of(["bss-5"], (*_NFWPO, *_OPTLAYER)),
        _set(output="leaky_relu"),
    ),
    "tanh-output-10-35": Departure(
        "the actor's output is a tanh scaled to [10, 35]",
        _of(["bss-5"], _PLAIN),
        _set(output="tanh", output_range=(10.0, 35.0)),
    ),
    "tanh-output-0-100": Departure(
        "the actor's output is 50 (1 + tanh)", _of(["nsfnet"], (*_NFWPO, *_PLAIN)), _set(output="tanh")
    ),
    "tanh-output-100": Departure(
        "the actor's output is 100 tanh",
        _of(["nsfnet"], _OPTLAYER),
        _set(output="tanh", output_range=(-100.0, 100.0)),
    ),
    "warmup-all": Departure(
        "warm-up actions are uniform over all 23,751 integer allocations",
        _of(["bss-5"], _NFWPO),
        _set(warmup_allocations=(150, 10, 35)),
    ),
    "warmup-20": Departure(
        "warm-up actions are uniform over the 20,176 integer allocations of at least 20 a station",
        _of(["bss-5"], _PLAIN),
        _set(warmup_allocations=(150, 20, 35)),
    ),
    "warmup-20-36": Departure(
        "warm-up proposals are uniform in [20, 36]", _of(["bss-5"], _OPTLAYER), _set(warmup_range=(20.0, 36.0))
    ),
    "warmup-box": Departure(
        "warm-up proposals are uniform in the action box",
        _of(["reacher", "halfcheetah", "halfcheetah-box"], _NEURAL),
        _set(warmup_in_box=True),
    ),
    "warmup-rates": Departure(
        "warm-up proposals are uniform in [0, 100]", _of(["nsfnet"], _NEURAL), _set(warmup_in_box=True)
    ),
    "intervals": Departure(
        "the critic is updated every 25 steps and the table every 50",
        _of(["bss-3"], _TABULAR),
        _set(critic_interval=25, table_interval=50),
    ),
    "frozen-critic": Departure("the target critic is never updated", _of(["bss-3"], _TABULAR), _set(target_ratio=0.0)),
    "table-is-target": Departure(
        "the target table is the table itself", _of(["bss-3"], _TABULAR), _set(target_interval=1)
    ),
    "odd-observation": Departure(
        "the critic sees whole observations, and cells are judged at one whose demands and time are an index",
        _of(["bss-3"], _TABULAR),
        _set(odd_observation=True),
    ),
}


def is_known(task: str, algo: str) -> bool:
    """Whether something is known of what the authors' code of a method does on a task."""
    return bool(_found(task, algo))


def as_authors(task: str, algo: str) -> Algorithm:
    """A method on a task with everything that the authors' code does to it."""
    algorithm = _paper(task, algo)
    for departure in _found(task, algo).values():
        algorithm = departure.change(algorithm)
    return algorithm


def departures(task: str, algo: str) -> Mapping[str, Algorithm]:
    """By name, the method with the `paper` settings but for one departure each; `DEPARTURES` says what they are."""
    paper = _paper(task, algo)
    return {name: departure.change(paper) for name, departure in _found(task, algo).items()}


def run_config(
    task: str,
    algo: str,
    seed: int,
    departure: str | None = None,
    *,
    steps: int | None = None,
    episodes: int | None = None,
    checkpoint_every: int = 10_000,
) -> RunConfig:
    """A run with one departure and the paper's length, or with all of them and the length of the authors' code.

    `episodes` are those of an evaluation.
    """
    if departure is not None:
        known = departures(task, algo)
        if departure not in known:
            raise ValueError(f"{algo} on {task} has no departure {departure!r}; it has {', '.join(known)}, and {ALL}.")
        algorithm, variant = known[departure], departure
    else:
        algorithm, variant = as_authors(task, algo), ALL
        steps = _STEPS.get((task, algo), _STEPS[task, None]) if steps is None else steps
        episodes = _EPISODES.get(task) if episodes is None else episodes
    config = configure(
        task, algo, seed, steps=steps, variant=variant, episodes=episodes, checkpoint_every=checkpoint_every
    )
    return replace(config, algorithm=describe(algorithm))


# Environment steps of a run, and episodes per evaluation where they are not the paper's ten.
_STEPS: Mapping[tuple[str, str | None], int] = {
    ("bss-3", None): 1_000_000,
    ("bss-5", None): 500_000,
    ("bss-5", "nfwpo"): 1_000_000,
    ("nsfnet", None): 500_000,
    ("reacher", None): 500_000,
    ("halfcheetah", None): 1_000_000,
    ("halfcheetah-box", None): 1_000_000,
}
_EPISODES = {"bss-3": 5, "nsfnet": 5}


def _found(task: str, algo: str) -> Mapping[str, Departure]:
    return {name: departure for name, departure in DEPARTURES.items() if (task, algo) in departure.of}


def _paper(task: str, algo: str) -> Algorithm:
    """The method with the `paper` settings, as one that can depart from them."""
    paper = algorithm_of(find_task(task), algo, "paper")
    settings = {field.name: getattr(paper, field.name) for field in fields(paper)}
    if isinstance(paper, BikeTable):
        return AuthorsTable(**settings)
    if not isinstance(paper, DDPG):
        raise ValueError(
            f"Nothing is known of what the authors' code of {algo!r} does otherwise than its settings say."
        )
    if isinstance(paper.rule, ThroughProjection):
        settings["rule"] = AuthorsProjection()
    return AuthorsDDPG(**settings)
