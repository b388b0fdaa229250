"""A map of the packet network: each link as wide and as red as it is loaded, with its numbers beside it."""

import numpy as np
from jaxtyping import Float64, UInt8
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure

from feasible.envs.network.state import (
    DURATION,
    LATENCY,
    NOW,
    OLDEST,
    PLAYED,
    REWARD,
    ROOM,
    SENT,
    SIZE,
    THROUGHPUT,
    State,
)
from feasible.envs.network.topology import Topology

INK, QUIET = "#26323d", "#8b98a5"
LOADS = LinearSegmentedColormap.from_list("load", ["#c9d6df", "#5ab4ac", "#f2b134", "#d7301f"])
# The colours run to 120 %, so that a full link and an overloaded one look different.
FULLEST = 1.2


def link_loads(topology: Topology, state: State) -> Float64[np.ndarray, " l"]:
    """Packets a second that the last step sent over each link."""
    loads = np.zeros(len(topology.links))
    seconds = max(float(state.clock[DURATION]), 1e-9)
    for path, sent in zip(topology.paths, state.tally[SENT], strict=True):
        loads[list(path)] += sent / seconds
    return loads


def queue_lengths(topology: Topology, state: State) -> Float64[np.ndarray, " l"]:
    """Packets that wait in the forward queue of each link now."""
    ends = state.server_ends.reshape(2 * len(topology.links), -1)[: len(topology.links)]
    lengths = np.zeros(len(topology.links))
    for link, (row, times) in enumerate(zip(ends, state.ring, strict=True)):
        given = int(row[SIZE]) - int(row[ROOM])
        places = (int(row[OLDEST]) + np.arange(given)) % times.size
        lengths[link] = np.count_nonzero(times[places] > state.clock[NOW])
    return lengths


def draw_network(topology: Topology, state: State) -> UInt8[np.ndarray, "height width 3"]:
    """The picture of the last step, 960 x 600 pixels."""
    figure = Figure(figsize=(9.6, 6.0), dpi=100, facecolor="white")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0.02, 0.13, 0.96, 0.75))
    axes.set_axis_off()
    axes.set_aspect("equal", adjustable="datalim")
    positions = np.asarray(topology.positions, dtype=np.float64).reshape(-1, 2)
    loads, queues = link_loads(topology, state), queue_lengths(topology, state)
    for number, link in enumerate(topology.links):
        if link.ends is None:
            continue
        ends = positions[list(link.ends)]
        share = loads[number] / link.rate
        axes.plot(
            *ends.T,
            color=LOADS(min(share / FULLEST, 1.0)),
            linewidth=3.0 + 9.0 * min(share, 1.5),
            solid_capstyle="round",
            zorder=1,
        )
        label = f"{loads[number]:.0f} / {link.rate:g}"
        if queues[number] >= 1:
            label += f"\n{queues[number]:.0f} queued"
        x, y = ends.mean(axis=0)
        axes.text(
            x,
            y,
            label,
            ha="center",
            va="center",
            fontsize=8,
            color=INK,
            zorder=3,
            bbox={"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": "none", "alpha": 0.85},
        )
    axes.scatter(*positions.T, s=420, color="white", edgecolors=INK, linewidths=1.6, zorder=4)
    for node, (x, y) in enumerate(positions):
        axes.text(x, y, str(node), ha="center", va="center", fontsize=10, color=INK, zorder=5)
    axes.margins(0.08)
    _write_captions(figure, topology, state)
    bar = figure.add_axes((0.70, 0.07, 0.26, 0.022))
    scale = figure.colorbar(ScalarMappable(Normalize(0.0, 100.0 * FULLEST), LOADS), cax=bar, orientation="horizontal")
    scale.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    scale.set_ticks([0, 50, 100], labels=["0", "50", "100 % of bandwidth"])
    bar.tick_params(labelsize=8, labelcolor=INK, length=0)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()


def _write_captions(figure: Figure, topology: Topology, state: State) -> None:
    played = int(state.counts[PLAYED])
    title = f"step {played}    reward {state.clock[REWARD]:+.2f}" if played else "before the first step"
    figure.text(0.03, 0.93, title, fontsize=15, color=INK, weight="bold")
    figure.text(
        0.97,
        0.935,
        "packets a second / bandwidth of each link",
        fontsize=9,
        color=QUIET,
        ha="right",
    )
    if not played:
        return
    # There is room for four lines.
    for flow in range(min(len(topology.flows), 4)):
        text = (
            f"flow {flow + 1}{_journey(topology, flow)}:  "
            f"{max(state.flows[THROUGHPUT, flow], 0.0):.1f} packets/s,  "
            f"round trip {1000.0 * state.flows[LATENCY, flow]:.0f} ms"
        )
        figure.text(0.03, 0.095 - 0.028 * flow, text, fontsize=9, color=INK)


def _journey(topology: Topology, flow: int) -> str:
    """From which node to which, as far as the links of its first path tell."""
    drawn = [ends for link in topology.flows[flow][0] if (ends := topology.links[link].ends) is not None]
    if len(drawn) < 2:
        return ""
    source = next(iter(set(drawn[0]) - set(drawn[1])), drawn[0][0])
    target = next(iter(set(drawn[-1]) - set(drawn[-2])), drawn[-1][1])
    return f" from {source} to {target}"
