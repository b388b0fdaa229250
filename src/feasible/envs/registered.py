"""A simulator and its constraint as one environment, which is what Gymnasium's registry holds.

The module `constrained` of each simulator makes them: it builds the simulator from its options and takes what
the constraint needs from it, so that another fleet, another network or another version of a robot brings its
own feasible sets.
"""

import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import VectorEnv

from feasible.constraints import ConstrainedEnv, ConstrainedVectorEnv


class RegisteredEnv(ConstrainedEnv):
    """A simulator and its constraint as ONE environment: what `unwrapped` and `spec` stand for.

    Code that strips wrappers (Gymnasium's checker asks for that) therefore never plays past the constraint; the
    simulator itself is `env.env`.
    """

    @property
    def unwrapped(self) -> "RegisteredEnv":
        return self

    @property
    def spec(self) -> EnvSpec | None:
        return self._cached_spec

    @spec.setter
    def spec(self, value: EnvSpec | None) -> None:
        self._cached_spec = value

    @property
    def _np_random(self) -> np.random.Generator | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.env.unwrapped._np_random


class RegisteredVectorEnv(ConstrainedVectorEnv):
    """The same for copies."""

    spec: EnvSpec | None = None  # pyright: ignore[reportIncompatibleMethodOverride]

    @property
    def unwrapped(self) -> VectorEnv:
        return self
