"""Calls from a program to the host: what is handed over, what comes back, and the way of other platforms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from feasible.run.drive import host_call as module
from feasible.run.drive.host_call import host_call

ANSWER = jax.ShapeDtypeStruct((3,), np.float32)


@pytest.mark.parametrize("known", [True, False], ids=["called", "by io_callback"])
def test_a_loop_asks_the_host_at_every_turn(known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not known:
        monkeypatch.setattr(module, "TARGETS", {})
    kept: list[np.ndarray] = []

    def asked(handed: np.ndarray) -> np.ndarray:
        assert type(handed) is np.ndarray
        assert jax.config.jax_default_device is jax.devices("cpu")[0]  # pyright: ignore[reportAttributeAccessIssue]
        kept.append(handed)
        return np.full(3, len(kept), np.float32)

    def turn(_: int, state: jax.Array) -> jax.Array:
        return 2 * state + host_call(asked, ANSWER, state[:, None])

    found = jax.jit(lambda state: jax.lax.fori_loop(0, 4, turn, state))(jnp.arange(3, dtype=jnp.float32))
    expected = [np.arange(3, dtype=np.float32)]
    for number in range(1, 5):
        expected.append(2 * expected[-1] + number)
    np.testing.assert_array_equal(found, expected[-1])
    # Kept beyond the call, and beyond the program.
    np.testing.assert_array_equal(np.stack(kept), np.stack(expected[:-1])[:, :, None])
