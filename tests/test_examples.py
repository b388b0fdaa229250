"""Every example runs as it stands, in seconds, and prints what it is about."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.code_generation import xla_flags
from tests.run.gate import PATIENCE

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def printed(name: str) -> str:
    """What an example prints, run as a person runs it, but for the library's folder and how programs are compiled."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "200", "XLA_FLAGS": xla_flags()}
    run = subprocess.run(
        [sys.executable, str(ROOT / "examples" / f"{name}.py")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    assert found is not None, text
    return float(found[1])


def test_every_example_is_tested() -> None:
    tested = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert {path.stem for path in EXAMPLES} <= tested


def test_custom_constraint() -> None:
    text = printed("custom_constraint")
    before, after = number(r"return of a day: (-?[\d.]+) before", text), number(r"and (-?[\d.]+) after 1500", text)
    assert after > before
    assert number(r"largest violation of an executed action: (\S+)", text) <= 1e-5
    assert "violates 'sum a - total <= 0' by" in text


def test_custom_set() -> None:
    text = printed("custom_set")
    assert number(r"largest violation of 500 projections: (\S+)", text) <= 1e-5
    assert number(r"over 500 samples y: (\S+)", text) <= 1e-4
    assert number(r"by at most (\S+)", text) <= 1e-4


def test_frank_wolfe() -> None:
    text = printed("frank_wolfe")
    gaps = [float(gap) for gap in re.findall(r"^ +\d+ +[\d.]+ +([\d.]+)$", text, re.MULTILINE)]
    assert len(gaps) == 9
    assert gaps[-1] < 0.01 * gaps[0]
    assert "feasible: True" in text


def test_cleanrl_style() -> None:
    text = printed("cleanrl_style")
    assert len(re.findall(r"^step +\d+  return", text, re.MULTILINE)) == 10
    assert number(r"proposals outside the feasible set: (\d+) of 2000", text) > 0


def test_cleanrl_pytorch() -> None:
    """Where PyTorch is not installed, which is large, the example says what it needs and no more."""
    if find_spec("torch") is None:
        with pytest.raises(AssertionError, match=r"This example needs PyTorch: pip install 'feasible\[torch\]'"):
            printed("cleanrl_pytorch")
        return
    text = printed("cleanrl_pytorch")
    assert len(re.findall(r"^step +\d+  mean return", text, re.MULTILINE)) == 4
    assert number(r"largest violation of an executed action: (\S+)", text) <= 2e-5


def test_with_stable_baselines3() -> None:
    """Where the library is not installed, which is large, the example says what it needs and no more."""
    if find_spec("stable_baselines3") is None:
        with pytest.raises(AssertionError, match=r"This example needs Stable-Baselines3: pip install"):
            printed("with_stable_baselines3")
        return
    text = printed("with_stable_baselines3")
    assert number(r"(\d+) of 600 actions were outside", text) > 0
    assert number(r"largest violation of an executed action: (\S+)", text) <= 2e-5
    assert number(r"return of an episode of the trained policy: (-?\d+)", text) < 0


def test_power_dispatch() -> None:
    text = printed("power_dispatch")
    alike, best = number(r"all alike +([\d.]+)", text), number(r"cheapest by hour +([\d.]+)", text)
    learned = [number(rf"{name} +([\d.]+)", text) for name in ("DDPGProjection", "NFWPO")]
    assert best < alike
    assert all(best <= price < 1.1 * alike for price in learned)
    assert min(learned) < alike


def test_rate_limit() -> None:
    text = printed("rate_limit")
    before, after = number(r"return of an episode: (-?[\d.]+) before", text), number(r"and (-?[\d.]+) after 600", text)
    assert after > before
    assert number(r"largest violation of an executed action: (\S+)", text) <= 1e-5
    assert 0.1 < number(r"largest change of a thruster in a step: (\S+) of", text) <= 0.2
    assert number(r"largest thrust: (\S+) of", text) <= 1.0
