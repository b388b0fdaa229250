"""Generators of the environments: seeding them, and their complete state as a plain array (no pickle).

Gymnasium's generators are PCG64: a 128-bit state and a 128-bit increment (each kept as its high and its low
64 bits), plus the half of the last 64-bit draw that a 32-bit draw has left over.
"""

from collections.abc import Sequence

import numpy as np
from gymnasium.utils import seeding
from numpy.typing import NDArray

_WORD = (1 << 64) - 1


def pack_generator(generator: np.random.Generator) -> NDArray[np.uint64]:
    """The generator's state as six unsigned 64-bit numbers."""
    state = generator.bit_generator.state
    if state["bit_generator"] != "PCG64":
        raise ValueError(f"generator must be numpy's PCG64 to be saved, got {state['bit_generator']}.")
    position, increment = state["state"]["state"], state["state"]["inc"]
    words = [position >> 64, position & _WORD, increment >> 64, increment & _WORD]
    return np.array([*words, state["has_uint32"], state["uinteger"]], dtype=np.uint64)


def unpack_generator(packed: NDArray[np.uint64]) -> np.random.Generator:
    """A new generator that continues exactly where the packed one stood."""
    if packed.shape != (6,) or packed.dtype != np.uint64:
        raise ValueError(f"generator must be 6 numbers of type uint64, not {packed.shape} {packed.dtype}.")
    high, low, increment_high, increment_low, has_uint32, uinteger = (int(word) for word in packed)
    bit_generator = np.random.PCG64()
    bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": high << 64 | low, "inc": increment_high << 64 | increment_low},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }
    return np.random.Generator(bit_generator)


def seeded_generators(
    generators: list[np.random.Generator] | None, seed: int | Sequence[int | None] | None, copies: int
) -> list[np.random.Generator]:
    """Generators seeded as Gymnasium does: copy i of seed s gets s + i; with None a copy goes on."""
    seeds = [seed + i for i in range(copies)] if isinstance(seed, int) else list(seed or [None] * copies)
    if len(seeds) != copies:
        raise ValueError(f"seed must be one integer or one for each of {copies} copies, not {len(seeds)}.")
    before = generators or [None] * copies
    return [
        previous if given is None and previous is not None else seeding.np_random(given)[0]
        for previous, given in zip(before, seeds, strict=True)
    ]
