"""The benchmark's tables, from runs made by hand; its page and figure, from the published results."""

import re
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.field import missing
from documentation.benchmark import Benchmark, benchmark
from documentation.benchmark_figure import FOLDER, figures
from documentation.benchmark_tables import (
    aggregate_table,
    candidates_table,
    choice_table,
    claims_table,
    improvement_table,
    missing_table,
    returns_table,
    time_table,
)
from documentation.blocks import regenerated
from documentation.marked import ROOT
from documentation.plan import CANDIDATES, CHOICE, DIVERGED, METHODS, REFUSED, SEEDS, SELECTION, STAGES, STEPS, TASKS
from feasible.algorithms.description import build_algorithm, describe, settings_of
from feasible.report.runs import Run, Series
from feasible.run.config import RunConfig
from feasible.run.launch import configure

WORST: dict[str, float] = dict.fromkeys(TASKS, -100.0)
EVERY, WARMUP = 30_000, 1_000


def made(task: str, algo: str, seed: int, end: float, last: int = STEPS, variant: str = "benchmark") -> Run:
    """Its return rises evenly from zero to `end` at the last step; a quarter of its proposals is infeasible."""
    steps = np.arange(EVERY, last + 1, EVERY)
    series = {
        "eval/return": Series(steps, end * steps / STEPS),
        "violation/proposed_count": Series(steps, (steps + 1 - WARMUP) / 4),
        "violation/intended_count": Series(steps, (steps + 1 - WARMUP) / 8),
        "violation/executed_max": Series(steps, np.full(len(steps), 2e-7)),
        "time/steps_per_second": Series(steps, np.full(len(steps), 500.0)),
    }
    described = {"algorithm": {"warmup": WARMUP}, "machine": {"device": "cpu (one)"}}
    return Run("made", task, algo, variant, seed, "default", STEPS, last, described, series)


def row(table: str, first: str) -> list[str]:
    (line,) = [line for line in table.splitlines() if line.startswith(f"| {first} |")]
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


@pytest.fixture
def found() -> Benchmark:
    """On Reacher projection ends at 1000, 2000, 3000 and alpha at twice that; ARAM lacks a seed, NFWPO steps."""
    runs = [made("reacher", "td3-projection", seed, 1_000.0 * (seed - 99)) for seed in SEEDS]
    runs += [made("reacher", "td3-alpha", seed, 2_000.0 * (seed - 99)) for seed in SEEDS]
    runs += [made("reacher", "aram", seed, 9_000.0) for seed in SEEDS[:2]]
    runs += [made("reacher", "td3-nfwpo", seed, 9_000.0, last=150_000) for seed in SEEDS]
    others = [made("reacher", "td3-radial", seed, 9_000.0) for seed in (0, 1, 2)]  # of another comparison
    return Benchmark([*runs, *others], WORST, least=2)


def test_a_cell_counts_once_all_seeds_have_made_all_steps(found: Benchmark) -> None:
    returns = returns_table(found)
    # Ten evaluations, a tenth to the whole of the end: their mean is 0.55 of it.
    assert row(returns, "`td3-projection`")[0] == "1,100 ± 449"
    assert row(returns, "`td3-alpha`")[0] == "2,200 ± 898"
    assert row(returns, "`aram`")[0] == "missing (2 of 3 seeds)"
    assert row(returns, "`td3-nfwpo`")[0] == "missing (150,000 steps)"
    assert row(returns, "`td3-radial`") == ["missing"]  # the other tasks have no complete cell at all
    assert found.cells["bss-5", "ppo-truncated"].missing() == "refused"
    complete, others = row(missing_table(found), "`reacher`")
    assert (complete, others.count("`")) == ("2 of 10", 16)
    assert row(missing_table(found), "`portfolio`")[1].count("`sac-truncated` diverges") == 1
    assert row(missing_table(found), "all")[0] == "2 of 98"


def test_a_run_that_diverged_is_not_missing() -> None:
    runs = [made("portfolio", "sac-truncated", seed, 1.0, last=120_000) for seed in SEEDS]
    found = Benchmark(runs, WORST)
    assert found.cells["portfolio", "sac-truncated"].missing() == "diverged (120,000 steps)"
    assert "sac-truncated" not in {config.algo for config in missing(found, ["portfolio"])}
    assert len(missing(found, ["portfolio"], ["sac-truncated"])) == 3


def test_at_fewer_steps_the_longest_run_of_each_seed_is_cut() -> None:
    short = [made("reacher", "td3-alpha", seed, 0.0, last=120_000, variant="smoke") for seed in SEEDS]
    long = [made("reacher", "td3-alpha", SEEDS[0], 3_000.0)]
    found = Benchmark([*long, *short], WORST, SELECTION.cut(120_000))
    # Of four evaluations, a tenth to four tenths of the end, the mean is a quarter.
    assert found.cells["reacher", "td3-alpha"].scores.tolist() == [750.0, 0.0, 0.0]


def test_the_scale_runs_from_random_actions_to_the_best_method(found: Benchmark) -> None:
    np.testing.assert_allclose(found.normalised("reacher", "td3-alpha"), np.array([1_200, 2_300, 3_400]) / 2_300)
    words = row(aggregate_table(found), "`td3-projection`")
    assert words[:2] == ["1", f"{1_200 / 2_300:.2f}"]
    assert words[3:] == ["25.0%", "12.5%", "2e-07", f"{1_200 / 2_300 - 1:+.2f} (`reacher`)"]


def test_means_over_tasks_are_of_scores_no_lower_than_minus_one(found: Benchmark) -> None:
    runs = [run for cell in found.cells.values() for run in cell.runs]
    runs += [made("ant-ball", "td3-alpha", seed, 0.0) for seed in SEEDS]
    runs += [made("ant-ball", "td3-projection", seed, -2_000.0 * (seed - 100)) for seed in SEEDS]
    both = Benchmark(runs, WORST, least=2)
    np.testing.assert_allclose(both.normalised("ant-ball", "td3-projection"), [1.0, -10.0, -21.0])
    words, of_ant = row(aggregate_table(both), "`td3-projection`"), (1 - 1 - 1) / 3
    assert words[1] == f"{(1_200 / 2_300 + of_ant) / 2:.2f}"
    assert words[-1] == "-11.00 (`ant-ball`)"
    (pair,) = [line for line in claims_table(both).splitlines() if "`td3-alpha` over `td3-projection`" in line]
    assert f"{(1_100 / 2_300 + 1 - of_ant) / 2:+.2f}" in pair


def test_pairs_are_compared_run_by_run(found: Benchmark) -> None:
    """550, 1,100, 1,650 against 1,100, 2,200, 3,300: of nine pairs the first wins one and ties one."""
    place = METHODS.index("td3-alpha")
    assert row(improvement_table(found), "`td3-projection`")[place].rstrip("*") == f"{1.5 / 9:.2f}"
    (pair,) = [line for line in claims_table(found).splitlines() if "`td3-alpha` over `td3-projection`" in line]
    assert [cell.strip() for cell in pair.strip("|").split("|")][2] == "1"
    assert f"| {7.5 / 9:.2f} |" in pair  # of one task there is no interval
    assert f"{1_100 / 2_300:+.2f}" in pair


def test_a_method_is_as_good_as_the_best_by_the_end_of_an_interval(found: Benchmark) -> None:
    """Projection's runs are at 650, 1,200 and 1,750 of 2,300, the leader's at 1,200, 2,300 and 3,400. At worst a draw
    has three of the least against three of the greatest, once in 729 times."""
    assert row(choice_table(found), "`td3-alpha`") == ["1", "1", "+0.00 (`reacher`)", "25.0%", "12.5%"]
    tasks, good, lowest, *shares = row(choice_table(found), "`td3-projection`")
    assert (tasks, good, shares) == ("1", "0", ["25.0%", "12.5%"])
    assert (650 - 3_400) / 2_300 < float(lowest.split()[0]) < (1_200 - 2_300) / 2_300


@pytest.fixture
def candidate() -> list[Run]:
    """The radial map, tuned, ends at 8,000 in all seeds; with its defaults it has not been run."""
    return [made("reacher", "td3-radial", seed, 8_000.0, last=270_000, variant="tuned") for seed in SEEDS]


def test_candidates_are_told_by_their_variant_and_do_not_move_the_scale(found: Benchmark, candidate: list[Run]) -> None:
    runs = [run for cell in found.cells.values() for run in cell.runs]
    beside = Benchmark([*runs, *candidate], WORST, CHOICE.cut(270_000), least=2)
    assert beside.best == Benchmark(runs, WORST, SELECTION.cut(270_000), least=2).best
    assert "reacher" in beside.tasks_of("td3-radial, tuned")
    assert not beside.cells["reacher", "td3-radial"].runs
    assert row(choice_table(beside), "`td3-radial, tuned`")[:2] == ["1", "1"]


def test_candidates_are_shown_at_the_last_steps_that_the_chosen_one_has_reached(
    found: Benchmark, candidate: list[Run]
) -> None:
    """Nine evaluations before 270,000 steps are a tenth to nine tenths of the end: 4,000, the leader's 2,000."""
    runs = [*(run for cell in found.cells.values() for run in cell.runs), *candidate]
    stages = [Benchmark(runs, WORST, CHOICE.cut(steps), least=2) for steps in (300_000, 270_000, 30_000)]
    table = candidates_table(stages, "best", CANDIDATES)
    steps, best, radial, *others = row(table, "`reacher`")
    assert (steps, best) == ("270,000", "2,000 ± 816, `td3-alpha`")
    assert radial.startswith(f"4,000 ± 0.00; {4_100 / 2_100:.2f} (+")
    assert radial.endswith("; 25.0% / 12.5%")
    assert others == ["missing"] * 3
    assert row(table, "`bss-5`") == ["missing"] * 6
    longer = [made("reacher", "td3-radial", seed, 5_000.0, variant="tuned-raw") for seed in SEEDS]
    stages = [Benchmark([*runs, *longer], WORST, CHOICE.cut(steps), least=2) for steps in (300_000, 270_000)]
    assert row(candidates_table(stages, "best", CANDIDATES), "`reacher`")[0] == "270,000"
    told_by_others = candidates_table(stages, "best", CANDIDATES, told_by=("td3-radial, tuned, raw",))
    assert row(told_by_others, "`reacher`")[0] == "300,000"


def test_a_candidate_is_trained_with_its_changes() -> None:
    (config,) = missing(Benchmark([], WORST, replace(CHOICE, seeds=(7,))), ["reacher"], ["td3-radial, tuned"])
    assert (config.algo, config.variant, config.seed) == ("td3-radial", "tuned", 7)
    # Recommended but for the units that critics see, which are the same in this task's box.
    trained, recommended = config.algorithm, configure("reacher", "recommended", 7).algorithm
    assert isinstance(trained, dict)
    assert {**trained, "critic_units": "box"} == recommended


def test_the_last_stage_has_full_length_and_a_cut_leaves_shorter_tasks_alone() -> None:
    """Lengths are those of the paper's tasks; of runs longer than 300,000 steps every other evaluation is left out."""
    lengths = {"reacher": 300_000, "halfcheetah": 700_000, "bss-5": 100_000, "nsfnet": 500_000, "portfolio": 150_000}
    configs = missing(Benchmark([], WORST, STAGES["final"]), methods=["td3-radial, tuned"])
    assert {config.task: config.steps for config in configs} == lengths
    assert {config.task for config in configs if config.eval_every == 10_000} == {"halfcheetah", "nsfnet"}
    assert dict(STAGES["final"].cut(400_000).steps) == {**lengths, "halfcheetah": 400_000, "nsfnet": 400_000}


@pytest.mark.parametrize("name", STAGES)
def test_every_cell_of_every_stage_can_be_configured(name: str) -> None:
    stage = STAGES[name]
    cells = [(task, entry) for task in stage.tasks for entry in stage.entries]
    wanted = [cell for cell in cells if cell not in DIVERGED and not stage.refused(*cell)]
    configs = missing(Benchmark([], WORST, stage))
    assert not REFUSED & {(config.task, config.algo) for config in configs}
    assert len(configs) == len(wanted) * len(stage.seeds)
    assert len({config.name for config in configs}) == len(configs)


@pytest.mark.parametrize("name", STAGES)
def test_what_is_published_of_a_stage_was_trained_as_its_plan_says(name: str) -> None:
    found = benchmark(name)
    planned = {
        (config.task, config.algo, config.variant): config for config in missing(Benchmark([], WORST, found.stage))
    }
    compared = 0
    for (task, row), cell in found.complete.items():
        entry = found.stage.entries[row]
        config = planned.get((task, entry.algo, entry.variants[0]))
        for run in cell.runs if config is not None else ():
            trained = build_algorithm(run.described["algorithm"])  # pyright: ignore[reportArgumentType]
            assert describe(trained) == config.algorithm, run.path  # pyright: ignore[reportOptionalMemberAccess]
            compared += 1
    assert compared or not found.complete


def test_rates_and_the_rest_of_td3_are_crossed() -> None:
    """Each of the four has the rates of one method and all else of the other, or both of one."""
    rates = ("actor_rate", "critic_rate", "target_ratio")

    def taken_apart(config: RunConfig) -> tuple[dict[str, object], dict[str, object]]:
        settings = settings_of(build_algorithm(config.algorithm))
        return {name: settings.pop(name) for name in rates}, settings

    configs = missing(Benchmark([], WORST, STAGES["base"]), ["halfcheetah"])
    plain, faster, slower, td3 = (taken_apart(config) for config in configs)
    assert faster == (td3[0], plain[1])
    assert slower == (plain[0], td3[1])
    assert td3[0] == {"actor_rate": 1e-3, "critic_rate": 1e-3, "target_ratio": 0.005}
    assert plain[0] == {"actor_rate": 1e-4, "critic_rate": 1e-3, "target_ratio": 0.001}


def test_time_is_counted_until_an_evaluation_reaches_the_level(found: Benchmark) -> None:
    """The level is 1,050. Projection's seeds end at 1,000, 2,000 and 3,000: the last two reach it, at 180,000 and
    120,000 steps, 300 seconds on average at 500 steps per second."""
    assert row(time_table(found), "`td3-projection`")[0] == "150k, 5.0 cpu (2 of 3)"
    assert row(time_table(found), "level")[0] == "1,050"


def test_a_task_of_few_methods_has_no_scale(found: Benchmark) -> None:
    assert found.tasks_of("td3-alpha") == ["reacher"]
    fewer = Benchmark([run for cell in found.cells.values() for run in cell.runs], WORST)
    assert fewer.tasks_of("td3-alpha") == []
    assert row(returns_table(fewer), "`td3-alpha`")[0] == "2,200 ± 898"
    assert row(aggregate_table(fewer), "`td3-alpha`")[0] == "0"


def test_missing_cells_are_those_of_the_plan_that_are_not_complete(found: Benchmark) -> None:
    configs = missing(found, ["reacher", "bss-5"], ["td3-alpha", "td3-nfwpo", "ppo-truncated"])
    assert [(config.task, config.algo, config.seed) for config in configs] == [
        *(("reacher", algo, seed) for algo in ("td3-nfwpo", "ppo-truncated") for seed in SEEDS),
        *(("bss-5", algo, seed) for algo in ("td3-nfwpo", "td3-alpha") for seed in SEEDS),
    ]
    assert {(config.preset, config.variant, config.steps) for config in configs} == {("default", "benchmark", STEPS)}


def test_the_page_and_its_figure_follow_from_the_results() -> None:
    text = (ROOT / "docs" / "benchmark.md").read_text()
    changed = text.replace("| all | ", "| all | 9", 1)
    assert changed != text
    assert regenerated(changed) == text
    drawn = dict(figures(benchmark()))
    assert drawn == {path.name: path.read_bytes() for path in FOLDER.iterdir()}
    assert set(re.findall(rf"figures/{FOLDER.name}/([\w-]+\.svg)", text)) == set(drawn)
