"""One linear limit in a box: what a half-space and an allocation at most have in common."""

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from feasible.sets.base import ActionSet, compiled, drawn
from feasible.sets.sampling import gaussian, hit_and_run


class LimitedBox(ActionSet):
    """{a : low <= a <= high} under one linear limit. Samples: hit-and-run. The diameter is the bounding box's, an upper
    bound."""

    low: eqx.AbstractVar[Float[Array, " n"]]
    high: eqx.AbstractVar[Float[Array, " n"]]

    @abstractmethod
    def reach(self) -> Float[Array, " n"]:
        """How far each coordinate can go from where the limit is furthest before the limit is met."""

    @property
    def scale(self) -> Float[Array, ""]:
        return jnp.max(jnp.maximum(jnp.abs(self.low), jnp.abs(self.high)))

    def direction(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return gaussian(key, self.reach())

    @drawn
    def sample(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return hit_and_run(self, key)

    @compiled
    def diameter(self) -> Float[Array, ""]:
        return jnp.linalg.norm(self.reach())
