"""Copies of a network side by side: seeding, restarting and stepping them in compiled code."""

import math

import numpy as np
from jaxtyping import Float64, Int64
from numba import njit

from feasible.envs.network.measurement import measure
from feasible.envs.network.randomness import poisson_gap_table
from feasible.envs.network.rules import Rules
from feasible.envs.network.simulator import OK, STEP_SECONDS, run
from feasible.envs.network.startup import TICKS_FACTOR, restart
from feasible.envs.network.state import (
    BLOCK,
    NEXT_GAP,
    NEXT_SERVICE,
    PLAYED,
    RATE,
    SEEDED,
    Batch,
    Results,
    State,
    new_batch,
    results,
    unpack,
    with_more_packets,
)
from feasible.envs.network.topology import Topology
from feasible.envs.network.wiring import Wiring, build_wiring
from feasible.envs.threads import Threads

# Any positive rate sends one packet a step in a burst, as the recorded runs' projections did (1e-14 to 1e-4).
BURST_PROBE = 1e-9
PACED_PROBE = 1.0


@njit(cache=True, nogil=True)
def _step_range(route, paths, servers, gaps, settings, numbers, indices, counts, actions, floor, first, last):
    """Step copies first, ..., last - 1; returns the copy at which there was no room for more packets.

    Wiring and batch come in as their arrays and are put together here: handing over a named tuple costs
    several microseconds per call, a tenth of a step.
    """
    wiring = Wiring(
        route,
        paths,
        servers,
        gaps,
        int(settings[0]),
        int(settings[1]),
        settings[2],
        settings[3],
        settings[4],
        settings[5] != 0.0,
        settings[6] != 0.0,
    )
    batch = Batch(numbers, indices, counts)
    for copy in range(first, last):
        state = unpack(wiring, batch, copy)
        for path in range(actions.shape[1]):
            state.ledger[RATE, path] = max(actions[copy, path], floor)
        duration = wiring.first_step if state.counts[PLAYED] == 0 else STEP_SECONDS
        if run(wiring, state, duration, wiring.gaps) != OK:
            return copy
        state.counts[PLAYED] += 1
        measure(wiring, state)
    return last


@njit(cache=True, nogil=True)
def all_finite(rates):
    """Whether there is no NaN and no infinity: for a handful of rates a fifth of what NumPy's calls cost."""
    finite = True
    for rate in rates.flat:
        finite &= math.isfinite(rate)
    return finite


@njit(cache=True, nogil=True)
def _restart_copy(wiring, batch, copy, table):
    return restart(wiring, unpack(wiring, batch, copy), table)


class Copies:
    """A number of independent copies of one network; all of their state is in `batch`."""

    def __init__(self, topology: Topology, rules: Rules, number: int, *, probe_packets: bool, threads: int = 1) -> None:
        if number < 1:
            raise ValueError(f"the number of copies must be at least 1, not {number}.")
        self._threads = Threads(threads, number)
        self.wiring = build_wiring(topology, rules)
        self._tables = (*self.wiring[:4], np.array(self.wiring[4:], dtype=np.float64))
        self.warm_up = poisson_gap_table(TICKS_FACTOR * rules.tick_rate)
        probe = PACED_PROBE if rules.emission == "paced" else BURST_PROBE
        self.floor = probe if probe_packets else -np.inf
        self._adopt(new_batch(self.wiring, number))

    def _adopt(self, batch: Batch) -> None:
        self.batch = batch
        self.states: list[State] = [unpack.py_func(self.wiring, batch, copy) for copy in range(len(batch.counts))]

    def seeded(self, copy: int) -> bool:
        """Whether a copy has a random stream yet."""
        return bool(self.states[copy].counts[SEEDED])

    def seed(self, copy: int, generator: np.random.Generator) -> None:
        """Give a copy its own random stream, which from here on is part of its state."""
        state = self.states[copy]
        state.words[:] = generator.integers(0, 2**64, size=4, dtype=np.uint64)
        state.counts[NEXT_SERVICE] = state.counts[NEXT_GAP] = BLOCK
        state.counts[SEEDED] = 1

    def restart(self, copy: int) -> None:
        """Start a new episode of a copy."""
        _restart_copy(self.wiring, self.batch, copy, self.warm_up)

    def step(self, actions: Float64[np.ndarray, "n k"]) -> None:
        """Play one step of every copy; `results` tells what it gave."""

        def play(first: int, last: int) -> tuple[int, int]:
            return _step_range(*self._tables, *self.batch, actions, self.floor, first, last), last

        reached = self._threads.run(play)
        while unfinished := [bounds for bounds in reached if bounds[0] < bounds[1]]:
            # Copies without room for all their packets: a few times in an environment's life.
            self._adopt(with_more_packets(self.wiring, self.batch))
            reached = [play(*bounds) for bounds in unfinished]

    def results(self) -> Results:
        """What the last step gave, copied."""
        return results(self.wiring, self.batch)

    def played(self) -> Int64[np.ndarray, " n"]:
        """Steps played in this episode."""
        return self.batch.counts[:, PLAYED].copy()

    def close(self) -> None:
        """End the threads."""
        self._threads.close()

    def save(self) -> dict[str, np.ndarray]:
        """The complete state, copied."""
        return {name: array.copy() for name, array in self.batch._asdict().items()}

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        """Continue from what `save` gave, of as many copies of the same network."""
        if set(saved) != set(Batch._fields):
            raise ValueError(
                f"state: it must be what get_state gave, with {', '.join(Batch._fields)}, but it has"
                f" {', '.join(sorted(saved)) or 'nothing'}."
            )
        fresh = new_batch(self.wiring, len(self.states))
        # The saved state may have made room for more packets.
        while fresh.numbers.shape[1] < np.shape(saved["numbers"])[-1]:
            fresh = with_more_packets(self.wiring, fresh)
        for name, array in fresh._asdict().items():
            if np.shape(saved[name]) != array.shape:
                raise ValueError(
                    f"state: {name} has shape {np.shape(saved[name])} where this environment has"
                    f" {array.shape}; restore it into an environment made with the same arguments."
                )
            array[...] = saved[name]
        self._adopt(fresh)
