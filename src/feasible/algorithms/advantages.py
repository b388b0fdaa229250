"""Generalised advantage estimation (Schulman et al., 2016) over rollouts that hold several episodes."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def advantages(
    reward: Float[Array, "t *c"],
    value: Float[Array, "t *c"],
    next_value: Float[Array, "t *c"],
    terminated: Bool[Array, "t *c"],
    ended: Bool[Array, "t *c"],
    *,
    discount: float,
    trace: float,
) -> Float[Array, "t *c"]:
    """A_t = d_t + discount * trace * A_{t+1}, d_t = r_t + discount * V(s_{t+1}) - V(s_t).

    V(s_{t+1}) counts nothing where the episode terminated; the sum ends wherever it ended, at a time limit too. At the
    last row, whose episode may go on, it ends with V(s_{t+1}) as well. A + V are the targets of the critic.
    """
    errors = reward + discount * jnp.where(terminated, 0.0, next_value) - value
    kept = jnp.where(ended, 0.0, discount * trace).astype(errors.dtype)

    def back(later: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        error, share = row
        now = error + share * later
        return now, now

    return jax.lax.scan(back, jnp.zeros_like(errors[0]), (errors, kept), reverse=True)[1]


def standardised(x: Float[Array, " b"]) -> Float[Array, " b"]:
    """Mean zero and standard deviation one."""
    return (x - jnp.mean(x)) / (jnp.std(x) + 1e-8)
