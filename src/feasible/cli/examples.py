"""Examples at the end of the help of a command."""

EXAMPLES: dict[str, tuple[str, ...]] = {
    "train": (
        "feasible train --task reacher --algo nfwpo",
        "feasible train --task reacher --algo recommended --seed 1 --steps 50000",
        "feasible train --task mine:boat --algo td3-projection --set batch_size=128 discount=0.98",
    ),
    "evaluate": (
        "feasible evaluate runs/reacher/nfwpo/seed-0 --episodes 20",
        "feasible evaluate runs/reacher/nfwpo/seed-0 --video runs/reacher/nfwpo/seed-0/film.gif",
    ),
    "export": ("feasible export runs/reacher/nfwpo/seed-0 --out policy.zip",),
    "resume": ("feasible resume runs/reacher/nfwpo/seed-0",),
    "compare": (
        "feasible compare --tasks reacher --algos nfwpo ddpg-projection --seeds 0 1 2",
        "feasible compare --tasks reacher halfcheetah --algos recommended sac-projection --jobs 4 --out runs",
        "feasible compare --tasks halfcheetah --algos nfwpo --device gpu",
    ),
    "report": ("feasible report runs --out report",),
    "reproduce": (
        "feasible reproduce table2 --steps-scale 0.1 --seeds 0",
        "feasible reproduce fig4 --preset fair",
    ),
    "tasks": ("feasible tasks", "feasible tasks reacher mine:boat"),
    "algos": ("feasible algos --task reacher",),
    "demo": ("feasible demo", "feasible demo --steps 1500 --out trial"),
}
"""By command, as a person types them."""


def examples_of(command: str) -> str:
    """Those of a command, to stand below its help."""
    lines = EXAMPLES.get(command, ())
    heading = "example" if len(lines) == 1 else "examples"
    return "\n".join([f"{heading}:", *(f"  {line}" for line in lines)]) if lines else ""
