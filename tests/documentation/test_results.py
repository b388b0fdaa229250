"""The published page follows from the published results."""

import re
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import pytest

import feasible as fs
from benchmarks.report import made_up, write_run
from documentation.blocks import regenerated
from documentation.marked import ROOT
from documentation.outcomes import outcome
from documentation.results import FIGURES, figures, published, task_table
from feasible.paper.printed import PRINTED, REFERENCES
from feasible.paper.references import FOUND_RATES, fixed_rates, searched_rates, staying_put
from feasible.report.runs import Runs, find_runs, read_runs

PAGES = [ROOT / "docs" / f"{name}.md" for name in ("reproduction", "beyond", "performance")]


@pytest.fixture(scope="module")
def results() -> Runs:
    return published()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_changed_table_would_be_noticed(page: Path) -> None:
    text = page.read_text()
    assert "<!-- generated: results " in text
    first = re.search(r"[\d.,]+ ±", text)
    assert first is not None
    assert regenerated(text.replace(first[0], "9,999 ±", 1)) == text


def test_every_figure_of_the_pages_is_drawn_from_the_results(results: Runs) -> None:
    text = "".join(page.read_text() for page in PAGES)
    shown = set(re.findall(rf"{FIGURES.name}/([\w+-]+\.svg)", text))
    drawn = dict(figures(results))
    assert shown
    assert shown <= set(drawn)
    assert set(drawn) == {path.name for path in FIGURES.iterdir()}
    eight, three = (re.search(rb'width="(\d+)', drawn[f"fair-{task}-return.svg"]) for task in ("halfcheetah", "bss-3"))
    assert eight
    assert three
    assert int(eight[1]) > int(three[1])  # the legend of eight methods stands beside the curves


def test_runs_in_a_population_and_alone_agree_within_noise(results: Runs) -> None:
    """Differences of equal seeds are about zero: with 5 of them |t| > 2 at 11.6% of evaluations by chance."""
    curves = []
    for variant in ("fair", "fair+alone"):
        members = [run for run in results.all if (run.task, run.algo, run.variant) == ("reacher", "nfwpo", variant)]
        assert [run.seed for run in members] == [0, 1, 2, 3, 4]
        curves.append([dict(zip(*astuple(run.series["eval/return"]), strict=True)) for run in members])
    steps = sorted(set.intersection(*(set(curve) for curve in [*curves[0], *curves[1]])))
    assert len(steps) > 50
    together, alone = (np.array([[curve[step] for step in steps] for curve in own]) for own in curves)
    apart = together - alone
    error = apart.std(0, ddof=1) / np.sqrt(5)
    assert np.mean(np.abs(apart.mean(0)) > 2 * error) <= 0.15
    assert abs(apart.mean()) < 0.05  # of returns around -4.4


def test_nothing_infeasible_was_executed_in_any_published_run(results: Runs) -> None:
    """Beyond the sets' tolerances, which are a few units in the last place of an action."""
    assert max(run.executed_violation or 0.0 for run in results.all) < 1e-3


def test_an_outcome_is_the_mean_of_the_last_evaluations(tmp_path: Path) -> None:
    for seed, length in ((0, 30), (1, 20)):
        write_run(tmp_path, made_up("reacher", "nfwpo", seed, length, logs=2))
    runs = read_runs(find_runs(tmp_path), tmp_path)
    found, end = outcome(runs.all), 20 * 2_000
    for run, score in zip(runs.all, found.scores, strict=True):
        returns = run.series["eval/return"]
        assert score == pytest.approx(np.mean(returns.values[returns.steps.tolist().index(end) - 9 :][:10]))
    assert found.reached == end
    table = task_table("reacher", runs)
    assert f"{PRINTED['reacher', 'nfwpo']:.2f}" in table
    assert f"; 2 seeds; {end:,} of 60,000 steps" in table
    assert "| PPO+Projection | -10.68 | not run |" in table


def test_a_method_that_is_the_same_in_both_presets_stands_in_both_columns(tmp_path: Path) -> None:
    for algo in ("ddpg-projection", "nfwpo"):
        config = made_up("reacher", algo, 0, 10, logs=2, variant="fair")
        write_run(tmp_path, replace(config, preset="fair"))
    table = task_table("reacher", read_runs(find_runs(tmp_path), tmp_path))
    rows = {line.split(" | ")[0].strip("| "): line.split(" | ")[2:] for line in table.splitlines()}
    paper, _, fair, _ = rows["DDPG+Projection"]
    assert paper == fair != "not run"
    paper, _, fair, _ = rows["NFWPO"]  # batches of 16 and of 64
    assert paper == "not run" != fair


def test_references_are_what_such_policies_reach() -> None:
    """Played anew, shorter than published: within four standard errors."""
    ((_, put),), ((_, uniform), (_, best)) = REFERENCES["bss-5"], REFERENCES["nsfnet"]
    played = staying_put("bss-5", episodes=60)
    assert abs(played.mean - put) < 4 * played.error
    for rates, level in ((np.full(9, 10.0), uniform), (np.array(FOUND_RATES), best)):
        played = fixed_rates(rates, episodes=6)
        assert abs(played.mean - level) < 4 * np.hypot(played.error, 1.0)


@pytest.mark.slow  # it plays NSFNET for seconds
def test_a_search_for_fixed_rates_stays_feasible_and_gains() -> None:
    """One generation from even rates, played in episodes that the search has not seen."""
    rates, even = searched_rates(generations=1), np.full(9, 10.0)
    env = fs.make("nsfnet")
    env.reset(seed=0)
    assert bool(env.action_set().accepts(rates))
    assert fixed_rates(rates, episodes=4).mean > fixed_rates(even, episodes=4).mean - 2_000
