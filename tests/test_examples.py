"""Every example runs as it stands, in seconds, and prints what it is about."""

import re
import runpy
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import gymnasium as gym
import pytest

from tests.run.runs import as_a_user

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[[str], str]]:
    """What an example prints, run as a script with JAX as a user has it; nothing is left registered afterwards.

    All in this process: to import the library anew takes longer than most examples.
    """
    monkeypatch.setenv("COLUMNS", "200")
    before = dict(gym.registry)

    def run(name: str) -> str:
        with as_a_user():
            runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out

    yield run
    gym.registry.clear()
    gym.registry.update(before)


def number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    assert found is not None, text
    return float(found[1])


def test_every_example_is_tested() -> None:
    tested = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert {path.stem for path in EXAMPLES} <= tested


def test_custom_constraint(printed: Callable[[str], str]) -> None:
    text = printed("custom_constraint")
    before, after = number(r"return of a day: (-?[\d.]+) before", text), number(r"and (-?[\d.]+) after 1500", text)
    assert after > before
    assert number(r"largest violation of an executed action: (\S+)", text) <= 1e-5
    assert "violates 'sum a - total <= 0' by" in text


def test_custom_set(printed: Callable[[str], str]) -> None:
    text = printed("custom_set")
    assert number(r"largest violation of 500 projections: (\S+)", text) <= 1e-5
    assert number(r"over 500 samples y: (\S+)", text) <= 1e-4
    assert number(r"by at most (\S+)", text) <= 1e-4


def test_frank_wolfe(printed: Callable[[str], str]) -> None:
    text = printed("frank_wolfe")
    gaps = [float(gap) for gap in re.findall(r"^ +\d+ +[\d.]+ +([\d.]+)$", text, re.MULTILINE)]
    assert len(gaps) == 9
    assert gaps[-1] < 0.01 * gaps[0]
    assert "feasible: True" in text


def test_cleanrl_style(printed: Callable[[str], str]) -> None:
    text = printed("cleanrl_style")
    assert len(re.findall(r"^step +\d+  return", text, re.MULTILINE)) == 5
    assert number(r"proposals outside the feasible set: (\d+) of 1000", text) > 0


def test_cleanrl_pytorch(printed: Callable[[str], str]) -> None:
    """Where PyTorch is not installed, which is large, the example says what it needs and no more."""
    if find_spec("torch") is None:
        with pytest.raises(SystemExit, match=r"This example needs PyTorch: pip install 'feasible\[torch\]'"):
            printed("cleanrl_pytorch")
        return
    text = printed("cleanrl_pytorch")
    assert len(re.findall(r"^step +\d+  mean return", text, re.MULTILINE)) == 4
    assert number(r"largest violation of an executed action: (\S+)", text) <= 2e-5


def test_with_stable_baselines3(printed: Callable[[str], str]) -> None:
    """Where the library is not installed, which is large, the example says what it needs and no more."""
    if find_spec("stable_baselines3") is None:
        with pytest.raises(SystemExit, match=r"This example needs Stable-Baselines3: pip install"):
            printed("with_stable_baselines3")
        return
    text = printed("with_stable_baselines3")
    assert number(r"(\d+) of 600 actions were outside", text) > 0
    assert number(r"largest violation of an executed action: (\S+)", text) <= 2e-5
    assert number(r"return of an episode of the trained policy: (-?\d+)", text) < 0


def test_power_dispatch(printed: Callable[[str], str]) -> None:
    text = printed("power_dispatch")
    alike, best = number(r"all alike +([\d.]+)", text), number(r"cheapest by hour +([\d.]+)", text)
    learned = [number(rf"{name} +([\d.]+)", text) for name in ("DDPGProjection", "NFWPO")]
    assert best < alike
    assert all(best <= price < 1.1 * alike for price in learned)
    assert min(learned) < alike


def test_rate_limit(printed: Callable[[str], str]) -> None:
    text = printed("rate_limit")
    before, after = number(r"return of an episode: (-?[\d.]+) before", text), number(r"and (-?[\d.]+) after 600", text)
    assert after > before
    assert number(r"largest violation of an executed action: (\S+)", text) <= 1e-5
    assert 0.1 < number(r"largest change of a thruster in a step: (\S+) of", text) <= 0.2
    assert number(r"largest thrust: (\S+) of", text) <= 1.0
