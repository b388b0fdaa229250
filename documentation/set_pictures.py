"""Pictures of the sets in two dimensions: the set, proposals and what is executed for them, and a linear maximiser."""

import io
from collections.abc import Callable, Mapping
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from jaxtyping import Array, Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from documentation.marked import ROOT
from feasible import sets
from feasible.sets import ActionSet

FOLDER = ROOT / "docs" / "sets" / "pictures"
GRADIENT = (1.0, 0.6)


def _heat() -> sets.EllipsoidBox:
    return sets.EllipsoidBox([[1.6, 0.9], [0.9, 1.4]], 0.7, 1.0)


EXAMPLES: Mapping[str, Callable[[], ActionSet]] = {
    "box": lambda: sets.Box([-1.0, -0.6], [0.8, 1.0]),
    "ball": lambda: sets.Ball([0.1, 0.0], 0.9),
    "ball-box": lambda: sets.BallBox([0.1, 0.0], 1.0, [-1.0, -0.6], [0.7, 1.0]),
    "half-space-box": lambda: sets.HalfSpaceBox([1.0, -2.0], 0.8, [-1.0, -0.8], [1.0, 1.0]),
    "weighted-l1-box": lambda: sets.WeightedL1Box([1.0, 2.0], 1.6, 1.0),
    "positive-power-box": lambda: sets.PositivePowerBox([1.0, 2.0], 1.0, 1.0),
    "allocation": lambda: sets.Allocation(1.0, [-0.4, -0.2], [1.2, 1.2]),
    "allocation-at-most": lambda: sets.AllocationAtMost(0.6, [-1.0, -0.8], [1.0, 1.0]),
    "turnover-allocation": lambda: sets.TurnoverAllocation(1.0, [-0.4, -0.2], [1.2, 1.2], [0.3, 0.7], 0.8),
    "integer-allocation": lambda: sets.IntegerAllocation(1, [-1, -1], [2, 2]),
    "polytope": lambda: sets.Polytope([[1.0, 1.0], [-1.0, 2.0]], [1.0, 1.2], -1.0, 1.0),
    "ellipsoid-box": _heat,
    "weighted-l1-ellipsoid-box": lambda: sets.WeightedL1EllipsoidBox([1.0, 2.0], 1.8, [1.0, 0.6], 0.8, [0.8, 0.8]),
    "cone-polytope": lambda: sets.ConePolytope(
        sets.Polytope([[1.0, 1.0]], [1.2], -1.0, 1.0), [sets.Cone([[0.8, 0.0]], [0.0], [0.0, 0.6], 0.4)]
    ),
    "intersection": lambda: _heat() & sets.Ball([0.4, 0.0], 0.8),
}
"""By name of the page: the set that its picture shows."""


def picture(region: ActionSet) -> bytes:
    """The picture of a set as SVG; the same set gives the same bytes."""
    with mpl.rc_context({"svg.hashsalt": "feasible", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(4.6, 4.0), layout="constrained")
        axes = figure.subplots()
        _draw_region(axes, region)
        _draw_projections(axes, region)
        _draw_maximiser(axes, region)
        axes.set_aspect("equal")
        axes.set_xlabel("a₁")
        axes.set_ylabel("a₂")
        axes.legend(loc="upper left", bbox_to_anchor=(0.0, -0.14), ncols=2, frameon=False)
        contents = io.BytesIO()
        figure.savefig(contents, format="svg", metadata={"Date": None})
    return contents.getvalue()


def write_pictures() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, build in EXAMPLES.items():
        path_of(name).write_bytes(picture(build()))


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.svg"


def _draw_region(axes: Axes, region: ActionSet) -> None:
    if isinstance(region, sets.IntegerAllocation):
        points = np.array([[k, float(region.hull.total) - k] for k in range(-1, 3)])
        axes.plot(*points.T, "o", color="tab:blue", markersize=9, alpha=0.5, label="feasible actions")
        return
    angles = jnp.linspace(0.0, 2.0 * jnp.pi, 180, endpoint=False, dtype=region.dtype)
    normals = jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
    # Support points in the order of their normals: the vertices of a polygon, a dense curve where the set is round.
    support = _rounded(jax.vmap(region.maximise_linear)(normals))
    boundary = np.array(
        [point for point, last in zip(support, np.roll(support, 1, 0), strict=True) if any(point != last)]
    )
    boundary = np.concatenate([boundary, boundary[:1]])
    axes.fill(*boundary.T, color="tab:blue", alpha=0.15)
    axes.plot(*boundary.T, color="tab:blue", label="feasible set")


def _draw_projections(axes: Axes, region: ActionSet) -> None:
    proposed = np.random.default_rng(5).uniform(-1.6, 1.9, (14, 2))
    executed = _rounded(jax.vmap(region.execute)(jnp.asarray(proposed, region.dtype)))
    for start, end in zip(proposed, executed, strict=True):
        axes.plot([start[0], end[0]], [start[1], end[1]], color="0.7", linewidth=0.8, zorder=1)
    axes.scatter(*proposed.T, s=14, color="tab:red", label="proposed", zorder=2)
    axes.scatter(*executed.T, s=14, color="tab:green", label="executed", zorder=3)


def _draw_maximiser(axes: Axes, region: ActionSet) -> None:
    x, y = _rounded(region.centre()).tolist()
    ahead = (x + 0.5 * GRADIENT[0], y + 0.5 * GRADIENT[1])
    axes.annotate("", xy=ahead, xytext=(x, y), arrowprops={"arrowstyle": "->", "color": "tab:orange"})
    axes.text(x + 0.55 * GRADIENT[0], y + 0.55 * GRADIENT[1], "g", color="tab:orange")
    best = _rounded(region.maximise_linear(GRADIENT))
    axes.scatter(*best, s=60, marker="s", color="tab:orange", label="maximise_linear(g)", zorder=2)


def _rounded(points: Float[Array, "..."]) -> Float[np.ndarray, "..."]:
    """To what a picture shows: machines may differ in the last digits, their pictures do not."""
    return np.asarray(points, np.float64).round(4)
