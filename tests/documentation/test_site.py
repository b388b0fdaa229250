"""The site: it builds strictly, needs no network, and what it says of the code is so."""

import ast
import re
import shutil
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import pytest

from documentation import field_tasks, set_pictures
from documentation.blocks import regenerated
from documentation.code_blocks import check_command, run_command
from documentation.marked import ROOT, pages
from documentation.settings import example
from feasible import sets
from feasible.algorithms.base import Spec
from feasible.catalogue.registry import METHODS
from tests.browser import needs_browser, watch
from tests.run.runs import as_a_user

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PAGES = list(pages())


class Sources(HTMLParser):
    """Every address from which a page would fetch something."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.found += [known[name] or "" for name in ("src", "srcset") if name in known]
        if tag == "link" and known.get("rel") != "canonical":
            self.found.append(known.get("href") or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly outside of the checkout."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "mkdocs.yml", folder)
    program = (sys.executable, "-m", "zensical", "build", "--strict", "--config-file", "mkdocs.yml")
    built = subprocess.run(program, cwd=folder, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    assert "No issues found" in built.stdout + built.stderr
    return folder / "site"


def test_it_needs_no_network(site: Path) -> None:
    built = sorted(site.rglob("*.html"))
    assert len(built) == len(PAGES)  # the front page is not of the site, but a page for what is not found is
    for page in built:
        parser = Sources()
        parser.feed(page.read_text())
        assert [source for source in parser.found if re.match(r"(https?:)?//", source)] == []


def public(package: str) -> set[str]:
    """What a package exports: the names that it imports as themselves."""
    path = ROOT / "src" / package.replace(".", "/") / "__init__.py"
    tree = ast.parse((path.with_suffix(".pyi") if package == "feasible" else path).read_text())
    imports = (node for node in tree.body if isinstance(node, ast.ImportFrom))
    return {alias.name for node in imports for alias in node.names if alias.asname == alias.name}


PACKAGES = ("feasible.sets", "feasible.constraints", "feasible.algorithms")


@pytest.mark.parametrize("package", ["feasible", *PACKAGES])
def test_every_public_name_is_in_the_reference(package: str, site: Path) -> None:
    page = "index" if package == "feasible" else package.removeprefix("feasible.")
    text = (site / "reference" / f"{page}.html").read_text()
    names = public(package) - {name.removeprefix("feasible.") for name in PACKAGES} - {"envs"}
    assert {name for name in names if f'id="{package}.{name}"' not in text} == set()


@needs_browser
def test_it_is_searched_and_read_in_files_on_a_desktop_and_a_phone(site: Path, browser: "Browser") -> None:
    page = browser.new_page(viewport={"width": 1360, "height": 900})
    complaints, fetched = watch(page)
    for name in ("index", "methods", "performance", "cookbook", "algorithms/ddpg-optlayer", "reference/sets"):
        page.goto((site / f"{name}.html").as_uri())
        for width in (1360, 390):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), (name, width)
            beyond = (
                """tables => tables.filter(table => table.scrollWidth > table.closest("article").clientWidth).length"""
            )
            assert width == 390 or page.eval_on_selector_all("article table", beyond) == 0, name
    page.set_viewport_size({"width": 1360, "height": 900})
    page.get_by_role("button", name="Search").first.click()
    page.get_by_placeholder("Search").fill("TurnoverAllocation")
    page.locator("a", has_text="Three times Allocation").first.wait_for()
    page.close()
    assert complaints == []
    assert [address for address in fetched if not address.startswith(("file:", "blob:"))] == []


def test_generated_parts_are_those_of_the_code() -> None:
    stale = [page.name for page in PAGES if regenerated(text := page.read_text()) != text]
    assert stale == [], "run python -m documentation"


def test_every_set_has_a_page_with_its_picture() -> None:
    classes = {name: value for name, value in vars(sets).items() if isinstance(value, type)}
    named = {name for name, value in classes.items() if issubclass(value, sets.ActionSet)} - {"ActionSet"}
    titles = {page.read_text().splitlines()[0].removeprefix("# ") for page in PAGES if page.parent.name == "sets"}
    assert named <= titles
    for name in set_pictures.EXAMPLES:
        assert f"](pictures/{name}.svg)" in (ROOT / "docs" / "sets" / f"{name}.md").read_text()
        assert set_pictures.path_of(name).stat().st_size < 40_000


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name == "ball" else pytest.mark.slow) for name in set_pictures.EXAMPLES],
)
def test_pictures_are_those_of_the_code(name: str) -> None:
    with as_a_user():
        drawn = set_pictures.picture(set_pictures.EXAMPLES[name]())
    assert drawn == set_pictures.path_of(name).read_bytes()


def test_every_method_has_a_page() -> None:
    text = "".join(page.read_text() for page in PAGES if page.parent.name == "algorithms" and page.stem != "index")
    assert {name for name in METHODS if f"--algo {name} " not in text} == set()


MENTION = re.compile(r"`((?:src|tests)/[\w/.]+?)(?:::([\w.:]+))?`")


def names_in(path: Path) -> set[str]:
    """Functions, classes, methods and constants of a file; those of a class also as `Class.name` and `Class::name`."""
    found: set[str] = set()

    def visit(body: list[ast.stmt], within: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.update({node.name} if not within else {f"{within}.{node.name}", f"{within}::{node.name}"})
                if isinstance(node, ast.ClassDef):
                    visit(node.body, node.name)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found.update(target.id for target in targets if isinstance(target, ast.Name))

    visit(ast.parse(path.read_text()).body, "")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_function_and_test_that_it_names_exists(page: Path) -> None:
    for path, name in MENTION.findall(page.read_text()):
        assert (ROOT / path).exists(), path
        assert not name or name in names_in(ROOT / path), f"{path}::{name}"


def test_every_item_of_the_paper_is_on_the_map() -> None:
    text = (ROOT / "docs" / "paper-map.md").read_text()
    items = "\n".join(line.split("|")[1] for line in text.splitlines() if line.startswith("| "))
    numbers = {int(number) for number in re.findall(r"\((\d+)\)", items)}
    for first, last in re.findall(r"\((\d+)\) to \((\d+)\)", items):
        numbers |= set(range(int(first), int(last) + 1))
    assert numbers == set(range(1, 66))
    wanted = ["Algorithm 1", "Algorithm 2", *(f"Proposition {k}" for k in (1, 2, 3)), "Corollary 1", "Definition 1"]
    wanted += [f"Lemma {k}" for k in range(1, 6)] + [f"Table {k}" for k in range(1, 5)]
    figures = re.findall(r"\d[abc]?", " ".join(re.findall(r"Figure ([\dabc, ]+)", items)))
    assert [item for item in wanted if item not in items] == []
    assert set(figures) == {"1a", "1b", "2a", "2b", "2c", "3a", "3b", "4a", "4b", "5a", "5b", "6"}


ONE = jnp.ones(3, jnp.float32)
KINDS = {
    "box": lambda obs: sets.Box(-ONE, ONE),
    "other convex set": lambda obs: sets.Ball(0.0 * ONE, 1.0),
    "integer allocation": lambda obs: sets.IntegerAllocation(1.0, -ONE, ONE),
    "set depends on the state": lambda obs: sets.Box(-obs[0] * ONE, obs[0] * ONE),
}


def test_methods_take_the_sets_that_the_table_says() -> None:
    text = (ROOT / "docs" / "methods.md").read_text()
    section = text.split("## What each method takes")[1].split("\n## ")[0]
    header, _, *rows = re.findall(r"^\|.*\|$", section, re.MULTILINE)
    columns = [cell.strip() for cell in header.split("|")[2:-1]]
    seen = set()
    for row in rows:
        name, *cells = (cell.strip() for cell in row.split("|")[1:-1])
        method = re.findall(r"`(.*?)`", name)[0]
        algorithm = example(method)
        for column, said in zip(columns, cells, strict=True):
            if column in KINDS:
                assert takes(algorithm, KINDS[column]) == (said == "yes"), (method, column)
        seen.add(method)
    assert seen == {name for name in METHODS if "tabular" not in name and name != "fwpo"}


def takes(algorithm, constraint) -> bool:
    spec = Spec(3, -ONE, ONE, constraint)
    try:
        jax.eval_shape(lambda key: algorithm.init(key, spec), jax.random.key(0))
    except ValueError:
        return False
    return True


def test_the_pictures_of_tasks_are_there_and_small() -> None:
    text = (ROOT / "docs" / "tasks-of-the-field.md").read_text()
    for name in (*field_tasks.DRAWN, *field_tasks.WIDE):
        assert f"](pictures/tasks/{name}.png)" in text
        assert field_tasks.path_of(name).stat().st_size < 60_000


INLINE = re.compile(r"`((?:python -m|feasible|make) [\w. /=+-]+)`")


def test_commands_within_sentences_exist() -> None:
    options = cache(lambda name: run_command(["feasible", name, "--help"]).split())
    for page in PAGES:
        for command in INLINE.findall(page.read_text()):
            program, name, *rest = command.split()
            if program == "feasible":
                known = options(name)
                assert {word for word in rest if word.startswith("--")} <= set(known), command
            else:
                check_command([program, name, *rest])
