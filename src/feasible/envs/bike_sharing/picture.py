"""A picture of bike sharing: stations with bikes against capacity, and rides as arrows between them."""

import numpy as np
from jaxtyping import Float64, UInt8
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle

from feasible.envs.bike_sharing.system import BikeSystem

PIXELS = 720
LARGEST_FLOWS = 60
# So many stations at most have numbers on the arrows between them.
NUMBERED = 6
LABEL = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
INK, EMPTY, FILLED, FULL, RIDES = "#22313f", "#dfe6e9", "#2e86ab", "#d1495b", "#8d99ae"


def picture(
    system: BikeSystem,
    bikes: Float64[np.ndarray, " stations"],
    flows: Float64[np.ndarray, "origin destination"],
    wanted: float,
    t: int,
) -> UInt8[np.ndarray, "height width 3"]:
    """Each station is a tank filled to bikes / capacity (red when full); arrows are the rides of the last step.

    `wanted` is how many rides were asked for in it. Only the largest rides are drawn where there are very many,
    and their numbers where there are few stations.
    """
    n = system.stations
    angle = np.pi / 2 - 2 * np.pi * np.arange(n) / n
    places = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    radius = min(0.17, 0.6 * np.pi / n)
    figure = Figure(figsize=(PIXELS / 100, PIXELS / 100), dpi=100, facecolor="white")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(-1.6, 1.6), ylim=(-1.6, 1.6), aspect="equal")
    axes.axis("off")
    largest = max(float(flows.max(initial=0.0)), 1.0)
    order = np.argsort(flows, axis=None, kind="stable")[::-1][:LARGEST_FLOWS]
    bend = 0.18 if n <= 12 else 0.8
    for origin, destination in zip(*np.unravel_index(order[::-1], flows.shape), strict=True):
        if flows[origin, destination] > 0.0 and origin != destination:
            share = flows[origin, destination] / largest
            ride = _ends(places[origin], places[destination], radius)
            axes.add_patch(_ride(*ride, radius, float(share), bend))
            if n <= NUMBERED:
                x, y = _early_point(*ride, bend)
                number = f"{flows[origin, destination]:.3g}"
                axes.text(x, y, number, ha="center", va="center", fontsize=8, color=INK, zorder=5, bbox=LABEL)
    for station in range(n):
        filled = float(np.clip(bikes[station] / system.capacities[station], 0.0, 1.0))
        x, y = places[station]
        tank = Circle((x, y), radius, facecolor=EMPTY, edgecolor=INK, linewidth=1.5, zorder=3)
        axes.add_patch(tank)
        level = Rectangle((x - radius, y - radius), 2 * radius, 2 * radius * filled, zorder=4)
        level.set_facecolor(FULL if filled >= 1.0 else FILLED)
        axes.add_patch(level)
        level.set_clip_path(tank)
        if n <= 24:
            caption = f"{bikes[station]:.3g} / {system.capacities[station]:.0f}"
            outside = 1.17 + radius
            axes.text(x * outside, y * outside, caption, ha="center", va="center", color=INK)
            axes.text(x, y, str(station), ha="center", va="center", color="white", weight="bold", zorder=5)
    title = f"step {t}: {flows.sum():.4g} of {wanted:.4g} rides served" if t else "before the first step"
    axes.text(0.0, 1.52, title, ha="center", va="center", fontsize=13, color=INK)
    legend = f"{bikes.sum():.4g} bikes; at each station bikes / capacity, red where full; arrows: rides of the step"
    axes.text(0.0, -1.52, legend, ha="center", va="center", fontsize=10, color=INK)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def _ends(
    start: Float64[np.ndarray, " 2"], end: Float64[np.ndarray, " 2"], radius: float
) -> tuple[Float64[np.ndarray, " 2"], Float64[np.ndarray, " 2"]]:
    """Where an arrow between two tanks begins and ends."""
    along = (end - start) / np.linalg.norm(end - start)
    return start + 1.15 * radius * along, end - 1.15 * radius * along


def _ride(
    tail: Float64[np.ndarray, " 2"], head: Float64[np.ndarray, " 2"], radius: float, share: float, bend: float
) -> FancyArrowPatch:
    # Bent, so that the ride back does not lie on top of the ride there.
    return FancyArrowPatch(
        (float(tail[0]), float(tail[1])),
        (float(head[0]), float(head[1])),
        connectionstyle=f"arc3,rad={bend}",
        arrowstyle="-|>",
        mutation_scale=(5.0 + 5.0 * share) * (1.0 + 10.0 * radius),
        linewidth=0.3 + 30.0 * radius * share,
        color=RIDES,
        alpha=0.35 + 0.5 * share,
        zorder=2,
    )


def _early_point(tail: Float64[np.ndarray, " 2"], head: Float64[np.ndarray, " 2"], bend: float) -> tuple[float, float]:
    """A point of the arrow nearer to its tail, where few others cross it: its Bezier curve at 0.3."""
    (dx, dy), s = head - tail, 0.3
    control = (tail + head) / 2.0 + bend * np.array([dy, -dx])
    x, y = (1.0 - s) ** 2 * tail + 2.0 * s * (1.0 - s) * control + s**2 * head
    return float(x), float(y)
