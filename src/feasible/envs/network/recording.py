"""Replay of a recorded trace of NSFNET: recorded actions and random numbers in, every recorded quantity
out."""

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from feasible.envs.network.measurement import measure
from feasible.envs.network.rules import Rules
from feasible.envs.network.simulator import (
    GAPS_USED_UP,
    OK,
    PACKETS_USED_UP,
    STEP_SECONDS,
    run,
)
from feasible.envs.network.startup import restart
from feasible.envs.network.state import (
    DROPS,
    LATENCY,
    NEXT_GAP,
    NEXT_SERVICE,
    NOW,
    RATE,
    RECEIVED,
    REWARD,
    SENT,
    THROUGHPUT,
    State,
    new_batch,
    unpack,
    with_more_packets,
)
from feasible.envs.network.topology import NSFNET
from feasible.envs.network.wiring import UNIT, build_wiring


def simulate_recorded(
    actions: ArrayLike, service_draws: ArrayLike, interarrivals: ArrayLike, n_interarrivals: ArrayLike
) -> dict[str, Float[np.ndarray, "steps ..."]]:
    """Play `actions` (steps, 9) on NSFNET by the recorded rules with recorded random numbers.

    `service_draws` are service times in seconds and `interarrivals` gaps between emission ticks, in order
    of use; `n_interarrivals[0]` gaps belong to the reset and `n_interarrivals[1 + t]` to step t. Any action
    is played, feasible or not; an exact zero sends nothing. Returns, each with steps as the first axis,
    `reward`, `obs` (40), `drop` (3, by position in the flow), `recv` and `sent` (3 flows x 3 paths), `thr`,
    `lat` (3) and `t_end`.
    """
    rates = _numbers("actions", actions, 2)
    services = _numbers("service_draws", service_draws, 1)
    gaps = _numbers("interarrivals", interarrivals, 1)
    ends = _block_ends(n_interarrivals, len(rates), gaps.size)
    wiring = build_wiring(NSFNET, Rules.recorded)
    if rates.shape[1] != len(wiring.route):
        raise ValueError(f"actions: shape must be (steps, {len(wiring.route)}), not {rates.shape}.")
    # A recorded draw is already in seconds; the way back only speeds it up.
    wiring.servers[UNIT, : len(NSFNET.links)] = 1.0
    wiring.servers[UNIT, len(NSFNET.links) :] = 1.0 / NSFNET.return_speedup
    batch = new_batch(wiring, 1)
    recorded = {
        "services": services,
        "gaps": gaps,
        "words": np.zeros(0, dtype=np.uint64),
    }
    state = unpack.py_func(wiring, batch, 0)._replace(**recorded)
    state.counts[NEXT_SERVICE] = state.counts[NEXT_GAP] = 0
    _require_numbers(restart(wiring, state, wiring.gaps), "the reset")
    trace: dict[str, list[np.ndarray]] = {name: [] for name in _quantities(state)}
    for step, action in enumerate(rates):
        state.ledger[RATE] = action
        state.counts[NEXT_GAP] = ends[step]
        duration = wiring.first_step if step == 0 else STEP_SECONDS
        while (status := run(wiring, state, duration, wiring.gaps)) == PACKETS_USED_UP:
            batch = with_more_packets(wiring, batch)
            state = unpack.py_func(wiring, batch, 0)._replace(**recorded)
        _require_numbers(status, f"step {step}")
        measure(wiring, state)
        for name, value in _quantities(state).items():
            trace[name].append(value)
    shapes = {name: value.shape for name, value in _quantities(state).items()}
    return {name: np.array(values).reshape(-1, *shapes[name]) for name, values in trace.items()}


def _quantities(state: State) -> dict[str, np.ndarray]:
    flows = state.flows.shape[1]
    return {
        "reward": state.clock[REWARD].copy(),
        "obs": state.history.ravel().copy(),
        "drop": state.flows[DROPS].copy(),
        "recv": state.tally[RECEIVED].reshape(flows, -1).copy(),
        "sent": state.tally[SENT].reshape(flows, -1).copy(),
        "thr": state.flows[THROUGHPUT].copy(),
        "lat": state.flows[LATENCY].copy(),
        "t_end": state.clock[NOW].copy(),
    }


def _numbers(name: str, values: ArrayLike, dimensions: int) -> Float[np.ndarray, "..."]:
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.ndim != dimensions:
        raise ValueError(f"{name}: must have {dimensions} dimensions, not shape {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name}: must be finite numbers, but some are not.")
    return array


def _block_ends(n_interarrivals: ArrayLike, steps: int, gaps: int) -> Int[np.ndarray, " steps_1"]:
    counts = np.asarray(n_interarrivals, dtype=np.int64)
    if counts.shape != (steps + 1,) or (counts < 0).any() or counts.sum() > gaps:
        raise ValueError(
            f"n_interarrivals: must hold {steps + 1} counts (reset, then each step) that sum to at most the"
            f" {gaps} interarrivals, not shape {counts.shape} with sum {counts.sum()}."
        )
    return np.cumsum(counts)


def _require_numbers(status: int, where: str) -> None:
    if status != OK:
        name = "interarrivals" if status == GAPS_USED_UP else "service_draws"
        raise ValueError(f"{name}: the recording ran out during {where}; give all the numbers that were used.")
