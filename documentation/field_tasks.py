"""The page of the field's tasks: what they score without learning, what NSFNET's corrections change, and pictures."""

import io
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from documentation.marked import ROOT
from documentation.outcomes import number
from feasible.catalogue.registry import PAPERS, TASKS, make

SCORES = ROOT / "documentation" / "task_scores.json"
"""What `python -m benchmarks.tasks` measured."""
FOLDER = ROOT / "docs" / "pictures" / "tasks"
DRAWN = ("reacher-tip", "halfcheetah-ma", "hopper-power", "walker-power", "ant-ball", "humanoid-ball")
WIDE = ("nsfnet-20", "bss-20", "portfolio")
"""The tasks of which there is a picture: robots, and the others."""
CORRECTIONS: Mapping[str, str] = {
    "recorded": "`nsfnet`: rules as recorded",
    "emission": "packets are paced, not sent in a burst",
    "first_step": "the first step lasts a second, not 0.15",
    "uncounted_packets": "throughput counts every packet",
    "drops_by": "drops are charged to their own flow",
    "own_service": "a packet's own service time is part of its delay",
    "return_route": "acknowledgements go back over every link once",
    "corrected": "`nsfnet-corrected`: all of these",
}


def scores_table(subject: str) -> str:
    """What random feasible actions, doing nothing and the reference come to; a share of the box that is outside."""
    del subject
    measured = json.loads(SCORES.read_text())["tasks"]
    lines = ["| task | outside, random play | outside, reference | random feasible | nothing | reference | which |"]
    lines.append("|---|---|---|---|---|---|---|")
    for name in TASKS:
        if name in measured:
            row = measured[name]
            shares = " | ".join("< 1%" if 0.0 < share < 0.005 else f"{share:.0%}" for share in row["outside"])
            scores = " | ".join(_score(*row[kind]) for kind in ("random", "nothing", "reference"))
            lines.append(f"| `{name}` | {shares} | {scores} | {row['rule']} |")
    return "\n".join(lines)


def rules_table(subject: str) -> str:
    """The mean reward of a step of NSFNET at fixed rates, with each correction alone."""
    del subject
    measured = json.loads(SCORES.read_text())["rules"]
    lines = ["| rules | " + " | ".join(measured["rates"]) + " |", "|---|" + "---|" * len(measured["rates"])]
    for name, words in CORRECTIONS.items():
        lines.append(f"| {words} | " + " | ".join(f"{value:.2f}" for value in measured["rules"][name]) + " |")
    return "\n".join(lines)


def _score(mean: float, error: float) -> str:
    return f"{number(mean)} ± {number(error)}"


def write_task_pictures() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in (*DRAWN, *WIDE):
        path_of(name).write_bytes(picture(name))


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.png"


def picture(name: str, steps: int = 8) -> bytes:
    """The environment after a few projected random actions, as a PNG of at most 256 colours."""
    from PIL import Image

    env = make(name, on_infeasible="project", render_mode="rgb_array")
    env.action_space.seed(0)
    env.reset(seed=0)
    for _ in range(steps):
        env.step(env.action_space.sample())
    drawn = Image.fromarray(np.asarray(env.render()))
    env.close()
    width = 240 if name in DRAWN else 640
    small = drawn.resize((width, round(drawn.height * width / drawn.width)), Image.Resampling.LANCZOS)
    contents = io.BytesIO()
    small.quantize(128).save(contents, "PNG", optimize=True)
    return contents.getvalue()


def tasks_table(subject: str) -> str:
    """The paper's tasks, or (`field`) the others, with their constraints and sizes."""
    known = {name: task for name, task in TASKS.items() if (name in PAPERS) == (subject != "field")}
    lines = ["| name | what it is | constraint on the action a | observation | action | episode |"]
    lines.append("|---|---|---|---|---|---|")
    for task in known.values():
        constraint = task.words.replace("|", "\\|")
        sizes = f"{task.observation_size} | {task.action_size} | {task.episode_length:,}"
        lines.append(f"| `{task.name}` | {task.title} | {constraint} | {sizes} |")
    return "\n".join(lines)
