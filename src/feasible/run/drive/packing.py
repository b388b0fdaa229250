"""Small arrays of a carry travel as one for each kind of number: every array that crosses costs more than it holds."""

from collections.abc import Collection, Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Shaped

SMALL = 2048  # numbers of a small array: biases, last layers, what a step chooses


class Packing:
    """How the leaves of a carry travel: the large ones as they are, then one vector a dtype with all small ones.

    Inside a program an operation reads its part of a vector in place, but for products, to which the part is copied:
    larger matrices travel by themselves. What most steps leave as it is (`steady`, by place) is not written by them:
    small arrays of it have a vector of their own, matrices travel by themselves. So do keys.
    """

    def __init__(self, shapes: Sequence[jax.ShapeDtypeStruct], steady: Collection[int] = ()):
        self._shapes = list(shapes)
        by_kind: dict[tuple[str, bool], list[int]] = {}
        for place, leaf in enumerate(self._shapes):
            alone = leaf.dtype == jnp.uint32 or (place in steady and len(leaf.shape) > 1)
            if leaf.size <= SMALL and not alone:
                by_kind.setdefault((str(leaf.dtype), place in steady), []).append(place)
        self._groups = [places for places in by_kind.values() if len(places) > 1]
        packed = {place for places in self._groups for place in places}
        self._large = [place for place in range(len(self._shapes)) if place not in packed]
        self.parts: list[list[int]] = [*([place] for place in self._large), *self._groups]
        """The leaves of each array that travels, by place."""
        self.apart = jax.jit(self._apart)
        """The vectors to the small leaves, one dispatch for all."""
        self.together = jax.jit(self._together)
        """The small leaves to the vectors."""

    def pack(self, leaves: Sequence[Array]) -> list[Array]:
        """The leaves as they travel."""
        return [*(leaves[place] for place in self._large), *self.together(self._small(leaves))]

    def unpack(self, packed: Sequence[Array]) -> list[Array]:
        """The leaves again, of what `pack` gave; the large ones are the same arrays."""
        large = len(self._large)
        found = dict(zip(self._large, packed[:large], strict=True))
        places = [place for group in self._groups for place in group]
        found |= zip(places, self.apart(list(packed[large:])), strict=True)
        return [found[place] for place in range(len(self._shapes))]

    def _small(self, leaves: Sequence[Array]) -> list[list[Array]]:
        return [[leaves[place] for place in group] for group in self._groups]

    def _together(self, groups: list[list[Array]]) -> list[Shaped[Array, " n"]]:
        return [jnp.concatenate([leaf.ravel() for leaf in group]) for group in groups]

    def _apart(self, vectors: list[Float[Array, " n"]]) -> list[Array]:
        leaves = []
        for group, vector in zip(self._groups, vectors, strict=True):
            first = 0
            for place in group:
                shape, last = self._shapes[place].shape, first + self._shapes[place].size
                leaves.append(jax.lax.slice(vector, (first,), (last,)).reshape(shape))
                first = last
        return leaves
