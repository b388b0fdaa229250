"""What `import feasible` brings along: little."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

HEAVY = (
    *("equinox", "imageio", "jax", "matplotlib", "mujoco", "numba", "optax", "scipy", "stable_baselines3"),
    *("tensorboard", "torch"),
)


def run(program: str) -> list[str]:
    """The lines that a program prints."""
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return finished.stdout.splitlines()


# Which of the heavy packages a program has loaded by then.
TELL = f"import sys; print(*[name for name in {HEAVY} if name in sys.modules])"


def test_the_package_and_its_version_load_nothing_heavy() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    program = f"import feasible\n{TELL}\nprint(feasible.__version__)"
    names = "print({'__version__', 'NFWPO'} <= set(dir(feasible)))"
    assert run(f"{program}\n{names}\n{TELL}") == ["", project["version"], "True", ""]


def test_type_checkers_are_told_that_there_are_types() -> None:
    """The marker is beside the code, and the wheel takes all that is there."""
    assert (ROOT / "src" / "feasible" / "py.typed").is_file()
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["src/feasible"]}


@pytest.fixture(scope="module")
def told() -> list[str]:
    """What a process says that uses the package more and more: thrice what it has loaded by then, and two of names."""
    asked = (
        "feasible.sets.Ball, feasible.constrain, feasible.make",
        "feasible.NFWPO",
        "values = {name: getattr(feasible, name) for name in dir(feasible)}",
    )
    program = "\n".join(f"{words}\n{TELL}" for words in asked)
    names = """
import pkgutil
packages = {module.name for module in pkgutil.iter_modules(feasible.__path__)}
print(*[name for name, value in values.items() if name in packages and callable(value)])
print(*[name for name in ("Agent", "agent", "algorithms", "Task", "NFWPO") if name not in values])
"""
    return run(f"import feasible\n{program}{names}")


def test_sets_load_jax_agents_no_simulator_and_all_names_no_mujoco(told: list[str]) -> None:
    sets, agents, names = (set(line.split()) for line in told[:3])
    assert {"jax"} <= sets <= {"equinox", "jax", "scipy"}
    assert agents <= {"equinox", "jax", "optax", "scipy"}
    assert "mujoco" not in names


def test_no_public_function_has_the_name_of_a_subpackage(told: list[str]) -> None:
    assert told[3:] == ["", ""]


def test_commands_that_only_tell_load_nothing_heavy() -> None:
    """One after the other in one process, which tells after each what it has loaded by then."""
    commands = [["--help"], ["--version"], ["train", "--help"], ["compare", "--help"], ["tasks"], ["algos"]]
    program = f"""
from feasible.cli import main
for command in {commands}:
    try:
        main(command)
    except SystemExit:
        print()
    {TELL.replace("print(", "print('loaded:', ")}
"""
    assert [line for line in run(program) if line.startswith("loaded:")] == ["loaded:"] * len(commands)


def test_a_missing_package_is_named_with_its_extra() -> None:
    needing = {"torch": "feasible.torch", "stable_baselines3": "feasible.sb3"}
    program = f"""
import importlib, sys
for missing, package in {needing}.items():
    sys.modules[missing] = None  # as if it were not installed
    try:
        importlib.import_module(package)
    except ModuleNotFoundError as error:
        print(error)
    del sys.modules[missing]
"""
    for said, package, extra in zip(run(program), needing.values(), ("torch", "sb3"), strict=True):
        assert said.startswith(f"{package} needs ")
        assert said.endswith(f": pip install 'feasible[{extra}]'.")
