"""The whole DDPG family on one task, in the fair settings: return against infeasible proposals, at equal steps.

Members are compared at the step that all of them have reached.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from documentation.outcomes import Outcome, outcome
from feasible.catalogue.registry import METHODS
from feasible.report.figures import BESIDE, STYLE, figure_files
from feasible.report.runs import Run

PRESET = "fair"
ABLATIONS = ("fair+actor_interval=50", "fair+through_projection_project_target=False")
"""Variants that show what a setting does, not what a method can."""
REPEATS = ("alone", "first")
"""Names of runs with the settings of others: trained without a population, or before they were run to the end."""
LONG = {"halfcheetah": 200_000, "reacher": 300_000}
"""The least step of those who are drawn: some were run for a first look only."""
_WORDS = {
    "averaged=True": "averaged",
    "frank_wolfe_away=True": "away steps",
    "frank_wolfe_by=gap": "by the gap",
    "frank_wolfe_by=search": "line search",
    "frank_wolfe_inner": "inner steps",
    "projected_gradient_by=direction": "by direction",
    "projected_gradient_inside": "inside",
    "projected_gradient_margin": "margin",
    "projected_gradient_step": "step",
    "through_projection_penalty": "penalty",
}
_TOGETHER = {
    ("actor_interval=2", "target_noise=0.2", "twin=True"): "TD3",
    ("actor_interval=10", "critic_interval=10"): "updates every 10 steps",
}
"""Changes that have one name."""


@dataclass(frozen=True)
class Member:
    """One method with one set of changes."""

    label: str
    outcome: Outcome


def members(task: str, runs: Sequence[Run], least: int | None = None) -> list[Member]:
    """Those whose runs have all reached the least step (none given: `LONG`), the best score first."""
    least = LONG.get(task, 0) if least is None else least
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        if (run.task, run.preset) == (task, PRESET) and _is_ddpg(run) and not _is_aside(run.variant):
            groups.setdefault((run.algo, run.variant), []).append(run)
    long = [own for own in groups.values() if min(run.reached for run in own) >= least]
    step = min((run.reached for own in long for run in own), default=0)
    found = [Member(label(own[0]), outcome(own, step)) for own in long]
    return sorted(found, key=lambda member: -member.outcome.scores.mean())


def rows(found: Sequence[Member]) -> list[list[str]]:
    """Method, score and both shares of each member."""
    return [
        [one.label, one.outcome.score, f"{one.outcome.infeasible:.1%}", f"{one.outcome.intended:.1%}"] for one in found
    ]


def figures(task: str, found: Sequence[Member]) -> Iterator[tuple[str, bytes]]:
    """A point a member: to the left it stays inside, up it returns more. Bars are standard deviations over seeds."""
    import matplotlib
    from matplotlib.figure import Figure

    if len(found) < 2:
        return
    with matplotlib.rc_context(STYLE):  # pyright: ignore[reportArgumentType]
        figure = Figure(figsize=(8.2, 3.8))
        axes = figure.subplots()
        colours = matplotlib.colormaps["tab20"].colors  # pyright: ignore[reportAttributeAccessIssue]
        for place, one in enumerate(found):
            share, scores = 100 * one.outcome.infeasible, one.outcome.scores
            look = {"fmt": "osD^vP*X<>"[place % 10], "color": colours[place % 20], "capsize": 2}
            spread = scores.std() if len(scores) > 1 else None
            axes.errorbar(share, scores.mean(), spread, label=one.label, **look)
        axes.set_xlim(left=0)
        axes.set_xlabel("infeasible proposals, %")
        axes.set_ylabel("return")
        axes.set_title(f"{task}, fair settings, {found[0].outcome.reached:,} steps")
        axes.legend(fontsize=7, **BESIDE)
        yield from figure_files(f"family-{task}", figure, ("svg",))


def label(run: Run) -> str:
    """The method's title, the step of a Frank-Wolfe rule, and what was changed, in words where there are some."""
    changes = [change for change in run.variant.split("+") if change and change != PRESET]
    words = []
    for some, name in _TOGETHER.items():
        if all(change in changes for change in some):
            changes = [change for change in changes if change not in some]
            words.append(name)
    rule = _rule(run)
    if rule["kind"] == "FrankWolfe":
        changes = [change for change in changes if not change.startswith("frank_wolfe_step")]
        words.append(f"step {rule['step']}")
    for change in changes:
        name, _, value = change.partition("=")
        words.append(_WORDS.get(change) or f"{_WORDS.get(name, name)} {value}")
    return METHODS[run.algo].title + "".join(f", {word}" for word in words)


def _is_aside(variant: str) -> bool:
    return variant in ABLATIONS or any(name in variant.split("+") for name in REPEATS)


def _is_ddpg(run: Run) -> bool:
    algorithm = run.described["algorithm"]
    return isinstance(algorithm, Mapping) and algorithm["kind"] == "DDPG"


def _rule(run: Run) -> Mapping[str, object]:
    algorithm = run.described["algorithm"]
    rule = algorithm["rule"] if isinstance(algorithm, Mapping) else None
    return rule if isinstance(rule, Mapping) else {"kind": None}
