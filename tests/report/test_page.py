"""The page in a real browser: no errors, no network, filters, hovering, seeds, bands, settings, phone and keyboard."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PIL import Image

from benchmarks.report import made_up, write_run
from feasible.report.media import LARGEST
from feasible.report.writing import Report, write_report
from tests.browser import needs_browser, watch
from tests.report.conftest import KINDS, SEEDS, undrawn, write_runs

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = needs_browser


@pytest.fixture(scope="module", autouse=True)
def _undrawn() -> Iterator[None]:
    with undrawn():
        yield


@pytest.fixture(scope="module")
def report(_undrawn: None, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A report of all made-up runs."""
    folder = tmp_path_factory.mktemp("report")
    return write_report(write_runs(folder / "runs"), folder / "report", title="Two tasks & <three> methods")


Tab = tuple["Page", list[str], list[str]]


@pytest.fixture(scope="module")
def tab(browser: "Browser") -> Iterator[Tab]:
    """A page for all tests, what it has complained of and what it has fetched: a new one takes longer than most."""
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    yield page, *watch(page)
    context.close()


@contextmanager
def shown(tab: Tab, report: Report, width: int = 1280) -> Iterator["Page"]:
    """The page of a report; at the end nothing has been complained of and nothing fetched."""
    page, complaints, fetched = tab
    complaints.clear()
    fetched.clear()
    page.mouse.move(0, 0)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(report.page.as_uri())
    yield page
    assert complaints == []
    assert fetched == [report.page.as_uri()]


@pytest.fixture
def page(tab: Tab, report: Report) -> Iterator["Page"]:
    with shown(tab, report) as page:
        yield page


def chip(page: "Page", item: str):
    return page.locator(f'#filters [data-item="{item}"]')


def test_it_shows_every_figure_score_and_run(page: "Page") -> None:
    assert page.locator("h1").inner_text() == "Two tasks & <three> methods"
    assert page.locator("figure.card").count() == 8
    for name in ("bss-3-return", "bss-3-distance", "reacher-return", "reacher-violations", "reacher-gradients"):
        figure = page.locator(f'figure[data-chart="{name}"]')
        assert figure.locator("path.curve").count() == 2
        assert figure.locator("path.band").count() == 2
        box = figure.locator("path.curve").first.bounding_box()
        assert box is not None
        assert box["width"] > 100
        assert box["height"] > 0
    levels = page.locator('figure[data-chart="bss-3-return"]')
    assert levels.locator("path.level").count() == 1
    assert "staying put, the optimum" in levels.inner_text()
    assert "Figure 4a" in page.locator('figure[data-chart="reacher-return"]').inner_text()
    assert page.locator("tr[data-score]").count() == len(KINDS)
    assert page.locator("tr[data-run]").count() == len(KINDS) * len(SEEDS)
    assert page.locator("[data-comparison]").count() == 2
    assert "8 of 8" in page.locator("#tiles").inner_text()


def test_scores_stand_beside_the_papers(page: "Page") -> None:
    row = page.locator('tr[data-score="reacher/nfwpo"]').inner_text()
    assert "−4.76" in row
    assert "±" in row


def test_tasks_and_methods_are_filtered_everywhere(page: "Page") -> None:
    chip(page, "bss-3").click()
    assert chip(page, "bss-3").get_attribute("aria-pressed") == "false"
    assert page.locator('figure[data-chart^="bss-3"]').count() == 0
    assert page.locator('tr[data-run^="bss-3"]').count() == 0
    assert page.locator('tr[data-score^="bss-3"]').count() == 0
    assert page.locator('[data-comparison="bss-3"]').count() == 0
    assert page.locator('figure[data-chart^="reacher"]').count() == 4
    chip(page, "ddpg-optlayer").click()
    assert page.locator('figure[data-chart="reacher-return"] path.curve').count() == 1
    assert page.locator('figure[data-chart="reacher-gradients"]').count() == 0
    assert page.locator("tr[data-run]").count() == len(SEEDS)
    chip(page, "nfwpo").click()
    assert "Nothing is chosen" in page.locator("#curves").inner_text()
    page.locator('[aria-label="Methods"] .all').click()
    page.locator('[aria-label="Tasks"] .all').click()
    assert page.locator("tr[data-run]").count() == len(KINDS) * len(SEEDS)


def test_bands_and_seeds_are_toggled(page: "Page") -> None:
    figure = page.locator('figure[data-chart="reacher-return"]')
    assert figure.locator("path.seed").count() == 0
    chip(page, "seeds").click()
    assert figure.locator("path.seed").count() == 2 * len(SEEDS)
    chip(page, "bands").click()
    assert figure.locator("path.band").count() == 0
    chip(page, "bands").click()
    assert figure.locator("path.band").count() == 2


def test_a_curve_tells_its_values(page: "Page") -> None:
    plot = page.locator('figure[data-chart="reacher-return"] svg.plot')
    tip = page.locator('figure[data-chart="reacher-return"] .tip')
    assert tip.is_hidden()
    plot.hover()
    text = tip.inner_text()
    assert "step " in text
    assert "NFWPO" in text
    assert "±" in text
    page.locator("h1").hover()
    assert tip.is_hidden()
    plot.focus()
    page.keyboard.press("Home")
    assert "step 2,000" in tip.inner_text()
    page.keyboard.press("ArrowRight")
    assert "step 4,000" in tip.inner_text()
    page.keyboard.press("Escape")
    assert tip.is_hidden()


def test_the_settings_of_a_run_are_found(page: "Page") -> None:
    page.locator("#find").fill("reacher/nfwpo/seed-1")
    row = page.locator("tr[data-run]")
    assert row.count() == 1
    row.locator("button.open").click()
    text = page.locator("tr.settings").inner_text()
    assert "algorithm.batch_size" in text
    assert "eval_every" in text
    assert "0.10.2" in text
    row.locator("button.open").click()
    assert page.locator("tr.settings").count() == 0


def test_it_fits_a_phone(page: "Page") -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function(
        "[...document.querySelectorAll('svg.plot')].every(svg => svg.getBoundingClientRect().right <= innerWidth)"
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    small = page.evaluate(
        "[...document.querySelectorAll('.chip')].filter(chip => chip.getBoundingClientRect().height < 30).length"
    )
    assert small == 0


def test_its_text_has_contrast_in_both_themes(page: "Page") -> None:
    """At least 4.5 to 1, as WCAG asks for ordinary text; 3 to 1 for lines."""
    for theme in ("light", "dark"):
        page.locator("#theme").click()
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        assert page.evaluate(CONTRAST, ["--ink", "--soft"]) >= 4.5
        colours = page.evaluate("data.methods.map((_, i) => `--m${i}`)")
        assert page.evaluate(CONTRAST, colours) >= 3


CONTRAST = """names => {
  const style = getComputedStyle(document.documentElement);
  const light = name => {
    const hex = style.getPropertyValue(name).trim().slice(1);
    const [r, g, b] = [0, 2, 4].map(i => parseInt(hex.slice(i, i + 2), 16) / 255)
      .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  return Math.min(...names.map(name => Math.min(...["--card", "--ground"].map(g => ratio(light(name), light(g))))));
}"""


def test_names_in_it_are_text_and_never_markup(tab: Tab, tmp_path: Path) -> None:
    for seed in (0, 1):
        write_run(
            tmp_path / "runs",
            made_up(
                "reacher", "nfwpo", seed, 12, 2, "<img src=x onerror=alert(1)><!--</script>".replace("/", "\u2215")
            ),
        )
    write_run(tmp_path / "runs", made_up("reacher", "nfwpo", 0, 12, 2))
    report = write_report(tmp_path / "runs", tmp_path / "report", title="</script><b>bold")
    with shown(tab, report) as page:
        assert page.locator("h1").inner_text() == "</script><b>bold"
        assert page.locator("img").count() == 0
        assert "<img src=x" in page.locator("#filters").inner_text()


def test_what_was_left_out_is_said_first(tab: Tab, tmp_path: Path) -> None:
    write_run(tmp_path / "runs", made_up("reacher", "nfwpo", 0, 12, 2), reached=4_000)
    write_run(tmp_path / "runs", made_up("reacher", "ddpg-shaping", 0, 12, 2))
    (write_run(tmp_path / "runs", made_up("reacher", "ddpg-shaping", 1, 12, 2)) / "metrics.jsonl").write_text("")
    report = write_report(tmp_path / "runs", tmp_path / "report")
    with shown(tab, report) as page:
        notes = page.locator("#notes").inner_text()
        assert "2 left out" in notes
        assert "reacher/ddpg-shaping/seed-1 has no evaluation yet." in notes
        assert "reacher/nfwpo/seed-0 has not ended (step 4,000 of 24,000)" in notes
        assert "no run has ended" in page.locator('tr[data-score="reacher/nfwpo"]').inner_text()
        assert "a single seed has no standard deviation" in notes
        assert "±" not in page.locator('tr[data-score="reacher/ddpg-shaping"]').inner_text()


def test_a_task_of_ones_own_is_told_by_its_runs_without_the_paper(tab: Tab, tmp_path: Path) -> None:
    for seed in (0, 1):
        config = replace(made_up("reacher", "nfwpo", seed, 12, 2), task="mine:boat", episodes=3)
        folder = write_run(tmp_path / "runs", config)
        described = json.loads((folder / "config.json").read_text())
        about = {"title": "a boat & a buoy", "constraint": "thrust <= charge"}
        (folder / "config.json").write_text(json.dumps({**described, **about}))
    report = write_report(tmp_path / "runs", tmp_path / "report")
    with shown(tab, report) as page:
        text = page.locator("body").inner_text()
        assert "a boat & a buoy" in text
        assert "thrust <= charge" in text
        assert "its last 10 evaluations of 3 episodes" in text
        assert "aper" not in page.locator("#scores").inner_text()
    assert "paper" not in (tmp_path / "report" / "tables" / "scores.csv").read_text()


@pytest.fixture(scope="module")
def with_films(_undrawn: None, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Two methods on one task, a film of one, a picture of the other, and files that are neither."""
    root = tmp_path_factory.mktemp("films")
    folders = [write_run(root / "runs", made_up("reacher", algo, 0, 12, 2)) for algo in ("nfwpo", "ddpg-shaping")]
    frames = [Image.new("P", (40, 30), colour) for colour in range(3)]
    frames[0].save(folders[0] / "film.gif", save_all=True, append_images=frames[1:], duration=50, loop=0)
    Image.new("RGB", (20, 10)).save(folders[1] / "picture.png")
    (folders[1] / "secret.gif").write_text("root:x:0:0")
    (folders[0] / "vast.mp4").write_bytes(b"\0\0\0\x18ftypmp42" + bytes(LARGEST))
    return write_report(root / "runs", root / "report", trial="Too short", ahead="Try <next>.")


def test_films_and_pictures_are_on_the_page(tab: Tab, with_films: Report) -> None:
    with shown(tab, with_films) as page:
        card = page.locator('[data-films="reacher"]')
        page.wait_for_function("[...document.querySelectorAll('.films img')].every(image => image.complete)")
        assert card.locator("img").evaluate_all("images => images.map(image => image.naturalWidth)") == [40, 20]
        assert "NFWPO" in card.inner_text()
        assert "vast.mp4 has 3.0 MB, too many for this page" in card.inner_text()
        assert "secret" not in page.content()
        curve = page.locator('figure[data-chart="reacher-return"]').bounding_box()
        beside = card.bounding_box()
        assert curve is not None
        assert beside is not None
        assert curve["y"] == beside["y"]


def test_a_trial_compares_nothing_and_says_what_is_next(tab: Tab, with_films: Report) -> None:
    with shown(tab, with_films) as page:
        assert page.locator("#trial").inner_text() == "Too short."
        assert page.locator(".best").count() == 0
        assert page.locator("#s-statistics").is_hidden()
        assert page.locator("#ahead").inner_text() == "Try <next>."


def test_settings_that_differ_are_marked(tab: Tab, with_films: Report) -> None:
    with shown(tab, with_films) as page:
        page.locator('tr[data-run="reacher/nfwpo/seed-0"] button.open').click()
        marked = page.locator("tr.settings .differs dt").all_inner_texts()
        assert "algorithm.rule.kind" in marked
        assert "algorithm.shaping" in marked
        assert {"eval_every", "algorithm.hidden_layers", "seed"}.isdisjoint(marked)
        page.locator(".differences summary").click()
        row = page.locator('[data-differs="reacher/algorithm.rule.kind"]').inner_text()
        assert row.split() == ["algorithm.rule.kind", "FrankWolfe", "PolicyGradient"]


def test_the_command_that_repeats_a_run_is_copied(tab: Tab, with_films: Report) -> None:
    with shown(tab, with_films) as page:
        page.locator('tr[data-run="reacher/nfwpo/seed-0"] button.open').click()
        page.locator(".repeat button").click()
        page.wait_for_function("document.querySelector('.repeat button').textContent === 'copied'")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith("feasible train --task reacher --algo nfwpo --seed 0 --steps 24000 --preset paper")
        assert copied == page.locator(".repeat code").inner_text()


def test_tables_that_scroll_on_a_phone_say_so(tab: Tab, with_films: Report) -> None:
    with shown(tab, with_films, 390) as page:
        hint = page.locator("#runs .scroll-hint")
        hint.wait_for(state="visible")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.set_viewport_size({"width": 1280, "height": 900})
        hint.wait_for(state="hidden")
