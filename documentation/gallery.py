"""A gallery of the sets: what one projection costs, and a Frank-Wolfe step drawn in two dimensions."""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
from jaxtyping import Array, Float
from matplotlib.axes import Axes
from rich.console import Console
from rich.table import Table

from feasible import sets
from feasible.sets import ActionSet

BATCH = 1024
TARGET = np.array([1.1, 0.9])  # where the drawn objective -||a - TARGET||^2 has its peak


def gallery() -> dict[str, tuple[str, ActionSet]]:
    """One example of every set: name -> (formula, set)."""
    weights = [3.0, -8.0, 0.0, 12.0, 5.0, -2.0]
    links = [[1.0, 1.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]]
    heat = sets.EllipsoidBox(np.diag([1.0, 2.0, 3.0]) + 0.5, 1.0, 1.0)
    friction = sets.ConePolytope(
        sets.Polytope([[1.0, 1.0, 1.0]], [1.5], [-1.0, -1.0, 0.0], 1.0),
        [sets.Cone([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], np.zeros(2), [0.0, 0.0, 0.6], 0.0)],
    )
    return {
        "Box": ("low <= a <= high", sets.Box(np.full(6, -1.0), 1.0)),
        "Ball": ("||a - c|| <= r", sets.Ball(np.zeros(2), 0.05**0.5)),
        "BallBox": ("||a - c|| <= r in a box", sets.BallBox(np.zeros(6), 1.0, -0.5, 0.8)),
        "HalfSpaceBox": ("w . a <= budget in a box", sets.HalfSpaceBox(weights, 5.0, -1.0, 1.0)),
        "WeightedL1Box": ("sum |w a| <= budget in a box", sets.WeightedL1Box(weights, 20.0, 1.0)),
        "PositivePowerBox": ("sum max(w a, 0) <= budget in a box", sets.PositivePowerBox(weights, 10.0, 1.0)),
        "Allocation": ("sum a = total, low <= a <= high", sets.Allocation(150.0, np.full(5, 10.0), 35.0)),
        "AllocationAtMost": ("sum a <= total, low <= a <= high", sets.AllocationAtMost(50.0, np.zeros(5), 35.0)),
        "TurnoverAllocation": (
            "an allocation near the last",
            sets.TurnoverAllocation(1.0, 0.0, 0.4, np.full(13, 1 / 13), 0.2),
        ),
        "IntegerAllocation": ("whole numbers with sum a = total", sets.IntegerAllocation(150, np.full(5, 10.0), 35.0)),
        "Polytope": ("A a <= b in a box", sets.Polytope(links, 50.0, 0.0, 50.0)),
        "EllipsoidBox": ("a'Q a <= level in a box", heat),
        "WeightedL1EllipsoidBox": (
            "sum |w a| <= budget, sum q a^2 <= level in a box",
            sets.WeightedL1EllipsoidBox(weights, 10.0, np.linspace(0.0, 1.0, 6), 0.1, 1.0),
        ),
        "ConePolytope": ("||F a + f|| <= c a + d in a polytope", friction),
        "Intersection": ("a & b", heat & sets.WeightedL1Box([1.0, 2.0, 3.0], 1.5, 1.0)),
    }


def microseconds(function: Callable[[Array], Array], points: Float[Array, "batch n"]) -> float:
    """Median time of one compiled call on the batch, for one point."""
    compiled = jax.jit(jax.vmap(function)).lower(points).compile()
    seconds = []
    for _ in range(7):
        start = time.perf_counter()
        jax.block_until_ready(compiled(points))
        seconds.append(time.perf_counter() - start)
    return 1e6 * float(np.median(seconds)) / len(points)


def cost_table() -> Table:
    table = Table(title=f"Feasible sets: microseconds per point, batches of {BATCH} on {jax.devices()[0]}")
    for column in ("set", "dim", "formula", "project", "maximise_linear", "largest violation"):
        table.add_column(column, justify="left" if column in ("set", "formula") else "right")
    key = jax.random.key(0)
    for name, (formula, feasible_set) in gallery().items():
        points = 2.0 * feasible_set.scale * jax.random.normal(key, (BATCH, feasible_set.dim), feasible_set.dtype)
        executed = jax.jit(jax.vmap(feasible_set.execute))(points)
        worst = float(jnp.max(jax.jit(jax.vmap(feasible_set.violation))(executed)))
        table.add_row(
            name,
            str(feasible_set.dim),
            formula,
            f"{microseconds(feasible_set.project, points):.2f}",
            f"{microseconds(feasible_set.maximise_linear, points):.2f}",
            f"{worst:.1e}",
        )
    return table


def draw(path: Path) -> None:
    """Left: proposed points and what is executed for them. Right: Frank-Wolfe steps towards the best feasible point."""
    from matplotlib.figure import Figure  # no global state, no window

    region = sets.WeightedL1Box([1.0, 2.0], 1.6, 1.0) & sets.Ball([0.15, 0.1], 0.9)
    figure = Figure(figsize=(11, 5), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    for axes in (left, right):
        boundary = _boundary(region)
        axes.fill(*boundary.T, color="tab:blue", alpha=0.15)
        axes.plot(*boundary.T, color="tab:blue", label="feasible set")
        axes.set_aspect("equal")
    _draw_projections(left, region)
    _draw_frank_wolfe(right, region)
    figure.savefig(path, dpi=150)


def _boundary(region: ActionSet) -> np.ndarray:
    angles = jnp.linspace(0.0, 2 * jnp.pi, 721, dtype=region.dtype)
    rays = jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
    reach = jax.vmap(lambda ray: region.exit_distance(region.centre(), ray))(rays)
    return np.asarray(region.centre()[None] + reach[:, None] * rays)


def _draw_projections(axes: Axes, region: ActionSet) -> None:
    proposed = np.random.default_rng(3).normal(0, 0.9, (40, 2))
    executed = np.asarray(jax.vmap(region.execute)(jnp.asarray(proposed, region.dtype)))
    for start, end in zip(proposed, executed, strict=True):
        axes.plot([start[0], end[0]], [start[1], end[1]], color="0.7", linewidth=0.8, zorder=1)
    axes.scatter(*proposed.T, s=16, color="tab:red", label="proposed", zorder=2)
    axes.scatter(*executed.T, s=16, color="tab:green", label="executed", zorder=3)
    axes.set_title("Projection: what is proposed, what is executed")
    axes.legend(loc="lower left")


def _draw_frank_wolfe(axes: Axes, region: ActionSet) -> None:
    grid = np.linspace(-1.6, 1.6, 100)
    height = -((grid[None, :] - TARGET[0]) ** 2) - (grid[:, None] - TARGET[1]) ** 2
    axes.contour(grid, grid, height, levels=12, cmap="Greys", linewidths=0.6)
    point = np.array([-0.6, -0.3])
    path = [point]
    for step in (0.4, 0.4, 0.3, 0.2, 0.1):
        gradient = 2 * (TARGET - point)
        vertex = np.asarray(region.maximise_linear(gradient))
        axes.plot([point[0], vertex[0]], [point[1], vertex[1]], ":", color="tab:orange", linewidth=1)
        axes.scatter(*vertex, marker="s", color="tab:orange", zorder=3)
        point = point + step * (vertex - point)
        path.append(point)
    axes.plot(*np.array(path).T, "o-", color="tab:green", label="Frank-Wolfe steps, all feasible", zorder=4)
    axes.scatter([], [], marker="s", color="tab:orange", label="maximise_linear(gradient)")
    axes.set_title("A Frank-Wolfe step: towards the linear maximiser")
    axes.legend(loc="lower left")


def main() -> None:
    parser = argparse.ArgumentParser(description="Show the feasible sets: a table of costs and one figure.")
    parser.add_argument("--out", type=Path, default=Path("gallery"), help="folder for the figure")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    matplotlib.use("Agg")
    console = Console()
    console.print("Measuring every set (compiling takes a minute the first time) ...")
    console.print(cost_table())
    draw(out / "sets.png")
    console.print(f"Figure: {out / 'sets.png'}")


if __name__ == "__main__":
    main()
