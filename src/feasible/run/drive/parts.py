"""Copies of an environment in parts that step by themselves: while one part steps, the device learns for another."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from feasible.constraints import ConstrainedVectorEnv
from feasible.constraints.states import State
from feasible.run.drive.plant import Steps, VectorPlant


class Plants:
    """The copies of a population's environment, in one part or more, each a vector of its own.

    >>> plants = Plants(lambda copies: registry.make_vec("halfcheetah", copies, threads=15), parts_of(algorithms, spec))
    >>> seen = plants.reset(seeds)                    # of all copies
    >>> steps = plants.of[0].step(actions[plants.rows[0]], 1)
    """

    awaited: int | None = None
    """Never a seed: a vector can be saved at any step, or not at all."""

    def __init__(
        self,
        make: Callable[[int], ConstrainedVectorEnv],
        rows: Sequence[slice],
        plant: Callable[[ConstrainedVectorEnv], VectorPlant] = VectorPlant,
    ):
        self.rows = tuple(rows)
        """By part: its copies."""
        self.of = tuple(plant(make(part.stop - part.start)) for part in rows)
        for own, part in zip(self.of, rows, strict=True):
            own.first = part.start
        self.copies = rows[-1].stop
        self.spec, self.wire, self.constraint = self.of[0].spec, self.of[0].wire, self.of[0].constraint

    def close(self) -> None:
        for plant in self.of:
            plant.env.close()

    def reset(self, seeds: Sequence[int], step: int = 0) -> Float[np.ndarray, "copies o"]:
        """Start an episode in every copy, each as the single environment with its seed does; `step` have been made."""
        return np.concatenate([plant.reset(seeds[part], step) for plant, part in zip(self.of, self.rows, strict=True)])

    @property
    def restorable(self) -> bool:
        """Whether there is a state to save."""
        return all(plant.restorable for plant in self.of)

    @property
    def exact(self) -> bool:
        """Whether a run can be resumed bit for bit."""
        return self.restorable

    def get_state(self) -> State:
        """The complete state of all copies."""
        if len(self.of) == 1:
            return self.of[0].get_state()
        states = [plant.get_state() for plant in self.of]
        return {f"{_name(part)}{name}": array for part, state in enumerate(states) for name, array in state.items()}

    def set_state(self, state: State) -> None:
        """Go on from a saved state; the copies have been reset before."""
        for part, plant in enumerate(self.of):
            name = _name(part) if len(self.of) > 1 else ""
            plant.set_state({key.removeprefix(name): array for key, array in state.items() if key.startswith(name)})


def joined(parts: Sequence[Steps]) -> Steps:
    """One step of all copies, from that of each part."""
    if len(parts) == 1:
        return parts[0]
    packets = np.concatenate([part.packets for part in parts])
    rewards, ended = (np.concatenate(rows) for rows in zip(*((p.rewards, p.ended) for p in parts), strict=True))
    return Steps(parts[0].wire, packets, rewards, ended, parts[0].layout)


def _name(part: int) -> str:
    return f"part-{part}/"
