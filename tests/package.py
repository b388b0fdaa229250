"""The installed package as a user meets it, run by `make package` in a fresh environment with the base installation.

It imports every public name, trains a short run, evaluates and films it, reports on it, and asks for what the base
installation leaves out; nothing of the checkout is in reach.
"""

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr
from pathlib import Path

import feasible
from feasible import cli

TASK = "feasible.cli.pendulum:pendulum"


def command(*words: str) -> str:
    """What the installed script prints."""
    script = Path(sys.executable).parent / "feasible"
    done = subprocess.run([script, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"feasible {' '.join(words)}:\n{done.stdout}{done.stderr}"
    return done.stdout


def complaint(*words: str) -> str:
    """What a command is refused with; in this process, which is quicker."""
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            cli.main(words)
    except SystemExit as end:
        if end.code == 1:
            return said.getvalue()
    raise AssertionError(f"feasible {' '.join(words)} is not refused.")


def main() -> None:
    home = Path(feasible.__file__).resolve()
    assert Path(sys.prefix).resolve() in home.parents, f"{home} is not the installed package."
    assert (home.parent / "py.typed").is_file()
    names = [name for name in dir(feasible) if not name.startswith("_")]
    for name in names:
        getattr(feasible, name)
    for package in (feasible.sets, feasible.constraints, feasible.algorithms):
        for name in dir(package):
            getattr(package, name)
    assert command("--version") == f"feasible {feasible.__version__}\n"
    small = ("--set", "warmup=50", "hidden_layers=[16]", "batch_size=8", "replay_size=500")
    command(
        "train", "--task", TASK, "--algo", "nfwpo", "--steps", "150", "--eval-every", "50", "--episodes", "1", *small
    )
    (config,) = Path("runs").rglob("config.json")
    run = config.parent
    assert json.loads(config.read_text())["versions"]["feasible"] == feasible.__version__
    command("evaluate", str(run), "--episodes", "1", "--video", str(run / "film.gif"))
    assert (run / "film.gif").read_bytes().startswith(b"GIF89a")
    assert "Report of 1 runs: report/index.html" in command("report", "runs")
    assert "data:image/gif;base64," in Path("report/index.html").read_text()
    for said, *words in (
        ("The task 'reacher' needs MuJoCo: pip install 'feasible[mujoco]'.", "train", "--task", "reacher"),
        ("The task 'nsfnet' needs Numba: pip install 'feasible[network]'.", "train", "--task", "nsfnet"),
        (
            "--tensorboard needs TensorBoard: pip install 'feasible[tensorboard]'.",
            "train",
            "--task",
            TASK,
            "--tensorboard",
        ),
        ("--ray needs Ray: pip install 'feasible[ray]'.", "compare", "--tasks", TASK, "--ray", "auto"),
    ):
        option = "--algos" if words[0] == "compare" else "--algo"
        assert complaint(*words, option, "nfwpo", "--out", "elsewhere") == f"feasible: {said}\n"
    assert "film as .mp4 needs imageio" in complaint("evaluate", str(run), "--video", "film.mp4")
    print(f"feasible {feasible.__version__}: {len(names)} public names, a run, a film and a report from the wheel.")


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    main()
