"""A picture of a portfolio: its weights against their cap, what is foreseen of each asset, and the wealth so far."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64, UInt8
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

INK, QUIET = "#26323d", "#8b98a5"
WEIGHT, RISING, FALLING, CAP = "#5ab4ac", "#2a9d63", "#d7301f", "#f2b134"


def picture(
    weights: Float64[np.ndarray, " n"],
    signals: Float64[np.ndarray, " n"],
    bound: float,
    wealth: Sequence[float],
    months: int,
) -> UInt8[np.ndarray, "height width 3"]:
    """800 x 480 pixels."""
    figure = Figure(figsize=(8.0, 4.8), dpi=100, facecolor="white", layout="constrained")
    canvas = FigureCanvasAgg(figure)
    upper, lower, line = figure.subplots(3, 1, height_ratios=[3, 1.6, 1.6])
    assets = np.arange(len(weights))
    names = ["cash", *(str(asset) for asset in assets[1:])]
    upper.bar(assets, 100.0 * weights, color=WEIGHT)
    upper.axhline(100.0 * bound, color=CAP, linewidth=2, label=f"cap {100 * bound:g} %")
    upper.set_ylim(0.0, 100.0 * max(1.2 * bound, 1.05 * float(weights.max())))
    upper.set_ylabel("weight, %")
    upper.set_xticks(assets, names)
    upper.legend(loc="upper right", frameon=False)
    lower.bar(assets, 100.0 * signals, color=np.where(signals >= 0.0, RISING, FALLING))
    lower.axhline(0.0, color=QUIET, linewidth=1)
    lower.set_ylim(-5.0, 5.0)
    lower.set_ylabel("signal, %")
    lower.set_xticks([])
    line.plot(wealth, "o-", color=INK, markersize=4)
    line.axhline(1.0, color=QUIET, linewidth=1)
    line.set_xlim(-0.3, months + 0.3)
    line.set_ylabel("wealth")
    line.set_xlabel(f"month {len(wealth) - 1} of {months}")
    for axes in (upper, lower, line):
        axes.spines[["top", "right"]].set_visible(False)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()
