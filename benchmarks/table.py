"""The printed table: one section a problem and batch, one line a solver, targets judged in the last column."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from benchmarks.measurement import Result, Timing
from benchmarks.problems import Problem

# A solver whose largest error is above this share of the set's scale does not answer the question.
WRONG = 0.05
# How many times faster than a peer a kind of set is meant to be projected, at which batch.
TARGETS = (
    ("closed form", "cvxpylayers, SCS", 16, 1000.0),
    ("closed form", "cvxpylayers, Clarabel", 16, 1000.0),
    ("closed form", "cvxpy + Clarabel, per point", 16, 100.0),
    ("polytope", "cvxpylayers, SCS", 16, 50.0),
    ("polytope", "cvxpylayers, Clarabel", 16, 50.0),
    ("intersection", "cvxpylayers, moreau (CUDA)", 1024, 10.0),
    ("intersection", "cvxpylayers, moreau", 1024, 2.0),
)


@dataclass(frozen=True)
class Section:
    """All solvers on one problem and batch; the first result is ours."""

    problem: Problem
    batch: int
    results: Sequence[Result]


def print_table(sections: Sequence[Section], where: str, width: int) -> None:
    table = Table(title=f"Projection: microseconds per point, {where}", title_justify="left")
    table.add_column("", min_width=30)
    for heading in ("forward", "ratio", "forward +\nbackward", "ratio", "largest\nerror"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("target", no_wrap=True)
    for section in sections:
        table.add_row(f"[bold]{section.problem.title}\nbatch {section.batch}[/bold]")
        ours = section.results[0]
        for result in section.results:
            table.add_row(*_cells(section, result, ours))
        table.add_section()
    console = Console(width=width)
    console.print(table)
    for line in (*_judgements(sections), *fastest_peers(sections)):
        console.print(line, highlight=False, soft_wrap=True)


def fastest_peers(sections: Sequence[Section]) -> list[str]:
    """A table in Markdown of the fastest peer for every set, batch and pass; those that are wrong do not count."""
    lines = [
        "",
        f"Fastest peer with errors of at most {WRONG:.0%} of the set's scale, microseconds per point:",
        "",
        "| set | batch | | ours | fastest peer | its time | ratio | its error |",
        "|---|---|---|---|---|---|---|---|",
    ]
    return lines + [row for section in sections for row in fastest_rows(section)]


def fastest_rows(section: Section) -> list[str]:
    """The rows of one set and batch in the table of fastest peers."""
    rows = []
    for label, timing in (("forward", _forward), ("with gradient", _backward)):
        ours, peers = timing(section.results[0]), section.results[1:]
        right = [
            (theirs.seconds, peer)
            for peer in peers
            if (theirs := timing(peer)) and (peer.error is None or peer.error <= WRONG)
        ]
        place = f"| {section.problem.name} | {section.batch:,} | {label} | {_time(ours)} |"
        if not right:
            rows.append(f"{place} none | - | - | - |")
            continue
        peer = min(right, key=lambda pair: pair[0])[1]
        error = "unknown" if peer.error is None else f"{peer.error:.0e}"
        rows.append(f"{place} {peer.title} | {_time(timing(peer))} | {_ratio(timing(peer), ours)} | {error} |")
    return rows


def _forward(result: Result) -> Timing | None:
    return result.forward


def _backward(result: Result) -> Timing | None:
    return result.backward


def _cells(section: Section, result: Result, ours: Result) -> list[str]:
    mine = result is ours
    return [
        "  " + result.title,
        _time(result.forward),
        "" if mine else _ratio(result.forward, ours.forward),
        _time(result.backward),
        "" if mine else _ratio(result.backward, ours.backward),
        "-" if result.error is None else f"{result.error:.0e}",
        "fails, see below" if result.failure else _verdict(section, result, ours),
    ]


def _time(timing: Timing | None) -> str:
    if timing is None:
        return "-"
    microseconds = 1e6 * timing.seconds
    digits = 0 if microseconds >= 100 else 1 if microseconds >= 10 else 3
    return ("~" if timing.extrapolated else "") + f"{microseconds:.{digits}f}"


def _quotient(theirs: Timing | None, ours: Timing | None) -> float | None:
    return None if theirs is None or ours is None else theirs.seconds / ours.seconds


def _ratio(theirs: Timing | None, ours: Timing | None) -> str:
    ratio = _quotient(theirs, ours)
    if ratio is None:
        return "-"
    return f"{ratio:.0f}x" if ratio >= 10 else f"{ratio:.2g}x"


def _target(section: Section, result: Result) -> float | None:
    wanted = (section.problem.kind, section.batch)
    return next(
        (factor for kind, peer, batch, factor in TARGETS if (kind, batch) == wanted and result.title.startswith(peer)),
        None,
    )


def _verdict(section: Section, result: Result, ours: Result) -> str:
    target = _target(section, result)
    if target is None:
        return ""
    ratios = (_quotient(result.forward, ours.forward), _quotient(result.backward, ours.backward))
    verdicts = ["reached" if ratio >= target else "MISSED" for ratio in ratios if ratio is not None]
    return f"{target:.0f}x " + ", ".join(verdicts)


def _judgements(sections: Sequence[Section]) -> list[str]:
    """One line for every target that is missed, one that counts the others, and what failed."""
    lines: list[str] = []
    judged = reached = 0
    for section in sections:
        ours = section.results[0]
        for result in section.results:
            if result.failure:
                lines.append(f"{section.problem.name}, {result.title} fails: {result.failure}")
            target = _target(section, result)
            passes = (
                ("forward", result.forward, ours.forward),
                ("forward + backward", result.backward, ours.backward),
            )
            for label, theirs, mine in passes:
                ratio = _quotient(theirs, mine)
                if target is None or ratio is None:
                    continue
                judged += 1
                reached += ratio >= target
                if ratio < target:
                    lines.append(
                        f"missed: {section.problem.name}, {label}, {ratio:.0f}x of {target:.0f}x {result.title}"
                    )
    if judged:
        lines.append(f"targets: {reached} of {judged} reached.")
    return lines
