"""The wire: all that crosses between host and device in a step, laid out, written and read here and nowhere else.

    packet        [next_obs | seen | reward, terminated, truncated]           to the device, a row for each copy
    certificate   [executed | violation, tolerance]                           from the device, a row for each copy
    report        [certificate, proposed outside, intended outside | ... | metrics by name]    of an agent

`seen` is the observation to act on next: that of a reset where an episode ended, else `next_obs`. An action may be
executed where violation <= tolerance.
"""

from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from numpy.typing import ArrayLike, NDArray

from feasible.algorithms.base import Decision, Metrics, Spec
from feasible.constraints.action_box import certified
from feasible.sets.base import ActionSet

OUTCOME = 3  # reward, terminated, truncated
CERTIFICATE = 2  # violation, tolerance
PROPOSALS = 2  # whether the proposal, with and without noise, is infeasible
Numbers = TypeVar("Numbers", np.ndarray, Array)
Rows: TypeAlias = Float[np.ndarray, "*c r"]


@dataclass(frozen=True)
class Wire:
    """The layout for one task."""

    observation: int
    action: int

    @property
    def packet(self) -> int:
        """Numbers of a packet."""
        return 2 * self.observation + OUTCOME

    @property
    def judged(self) -> int:
        """Numbers of a report that are of one copy."""
        return self.action + CERTIFICATE + PROPOSALS

    def pack(
        self,
        copies: int,
        next_obs: ArrayLike,
        seen: ArrayLike,
        reward: ArrayLike,
        terminated: ArrayLike,
        truncated: ArrayLike,
    ) -> Float[np.ndarray, "c packet"]:
        """The packets of a step, from rows or from the numbers of the only copy; a new array."""
        size = self.observation
        packets = np.empty((copies, 2 * size + OUTCOME), np.float32)
        packets[:, :size], packets[:, size : 2 * size] = next_obs, seen
        packets[:, -3], packets[:, -2], packets[:, -1] = reward, terminated, truncated
        return packets

    def next_obs(self, packets: Rows) -> Rows:
        return packets[..., : self.observation]

    def seen(self, packets: Rows) -> Rows:
        return packets[..., self.observation : 2 * self.observation]

    def unpack(
        self, packet: Float[Array, "*c packet"]
    ) -> tuple[Float[Array, "*c o"], Float[Array, "*c o"], Float[Array, "*c"], Bool[Array, "*c"], Bool[Array, "*c"]]:
        """Next observation, observation to act on, reward, terminated, truncated: on the device."""
        next_obs, seen, outcome = jnp.split(packet, [self.observation, 2 * self.observation], axis=-1)
        reward, terminated, truncated = jnp.moveaxis(outcome, -1, 0)
        return next_obs, seen, reward, terminated > 0, truncated > 0

    def executed(self, rows: Numbers) -> Numbers:
        """The actions of certificates or of judged rows."""
        return rows[..., : self.action]

    def certificate(self, rows: Numbers) -> tuple[Numbers, Numbers]:
        """Violations and tolerances of certificates or of judged rows."""
        return rows[..., self.action], rows[..., self.action + 1]

    def permits(self, rows: Rows) -> bool:
        """Whether all actions of judged rows may be executed; for few rows."""
        violation, tolerance = self.action, self.action + 1
        return all(row[violation] <= row[tolerance] for row in rows.tolist())

    def proposals(self, rows: Rows) -> tuple[NDArray, NDArray]:
        """Of judged rows: whether the proposal with and the one without noise was outside."""
        return rows[..., self.action + CERTIFICATE], rows[..., self.action + CERTIFICATE + 1]

    def read(self, reports: Float[np.ndarray, "*s agents r"], copies: int) -> tuple[Rows, Rows]:
        """(judged rows, one a copy of an agent; metrics, one an agent) of reports, without a copy of the numbers."""
        width = copies * self.judged
        judged = reports[..., :width].reshape(*reports.shape[:-2], -1, self.judged)
        return judged, reports[..., width:]


def wire_of(spec: Spec) -> Wire:
    return Wire(spec.observation_size, spec.action_size)


def certificate(spec: Spec, feasible_set: ActionSet, executed: Float[Array, " n"]) -> Float[Array, " n+2"]:
    """[executed | violation, tolerance]: what may be said of an action before it is executed."""
    judgement = jnp.stack(certified(spec.constraint, feasible_set, executed))
    return jnp.concatenate([executed, judgement.astype(executed.dtype)])


def judged(spec: Spec, obs: Float[Array, " o"], decision: Decision) -> Float[Array, " n+4"]:
    """The certificate of a decision, and whether its proposal, with and without noise, is infeasible."""
    feasible_set = spec.feasible_set(obs)
    outside = jnp.stack([~feasible_set.accepts(decision.proposed), ~feasible_set.accepts(decision.intended)])
    return jnp.concatenate([certificate(spec, feasible_set, decision.executed), outside.astype(obs.dtype)])


def report(judged: Float[Array, "*c r"], metrics: Metrics) -> Float[Array, " r"]:
    """The judged rows of one agent's copies and the metrics of its update, by name."""
    return jnp.concatenate(
        [judged.ravel(), *(jnp.atleast_1d(metrics[name]).astype(judged.dtype) for name in sorted(metrics))]
    )
