"""Many simulations of one model for MuJoCo before 4.0, which has no `mujoco.batch`: the part of it that copies use.

A simulation is its row of `state`, MuJoCo's complete state `mjSTATE_INTEGRATION`. A call loads each row into an MjData
of its own, computes, copies out what is bound, and saves the row; MuJoCo releases Python's lock while it computes, but
loading and saving hold it, so threads help less than those of `mujoco.batch`. Results equal its own to the last bit.
"""

# MuJoCo's compiled module declares its names to no type checker.
# pyright: reportAttributeAccessIssue=false

from collections.abc import Callable

import mujoco
import numpy as np
from jaxtyping import Float64, Int

from feasible.envs.threads import Threads

_STATE = mujoco.mjtState
_INTEGRATION = _STATE.mjSTATE_INTEGRATION.value
_FIELDS = {
    "qpos": _STATE.mjSTATE_QPOS,
    "qvel": _STATE.mjSTATE_QVEL,
    "qacc_warmstart": _STATE.mjSTATE_WARMSTART,
    "ctrl": _STATE.mjSTATE_CTRL,
}
"""Those parts of the state that are named."""

Which = Int[np.ndarray, " some"]


class Simulations:
    """`copies` simulations of a model on `threads` threads; `bind`, `reset`, `forward` and `step` as of a `Batch`."""

    def __init__(self, model: mujoco.MjModel, copies: int, threads: int) -> None:
        self._model = model
        self._data = [mujoco.MjData(model) for _ in range(copies)]
        self._threads = Threads(threads, copies)
        self._everyone = np.arange(copies)
        self._outputs: dict[str, Float64[np.ndarray, "copies ..."]] = {}
        numbers = mujoco.mj_stateSize(model, _INTEGRATION)
        self.state: Float64[np.ndarray, "copies numbers"] = np.empty((copies, numbers))
        self.reset(self._everyone)

    def bind(self, name: str) -> np.ndarray:
        """A view of rows of the state, or a result that every call renews for the simulations it is made for."""
        if name in _FIELDS:
            bit = _FIELDS[name].value
            start = mujoco.mj_stateSize(self._model, _INTEGRATION & (bit - 1))
            return self.state[:, start : start + mujoco.mj_stateSize(self._model, bit)]
        shape = getattr(self._data[0], name).shape
        results = self._outputs.setdefault(name, np.zeros((len(self._data), *shape))).view()
        results.flags.writeable = False
        return results

    def reset(self, ids: Which, stage: int = 0) -> None:
        """Put simulations into the model's own first state; nothing is computed (`stage` is `Batch`'s mjSTAGE_NONE)."""
        del stage
        for copy in ids:
            mujoco.mj_resetData(self._model, self._data[copy])
            self._save(copy)

    def forward(self, ids: Which) -> None:
        """Compute the results of the states, without a step."""
        self._call(lambda data: mujoco.mj_forward(self._model, data), ids)

    def step(self, nstep: int = 1) -> None:
        """Make so many steps in all simulations."""
        self._call(lambda data: mujoco.mj_step(self._model, data, nstep), self._everyone)

    def _call(self, compute: Callable[[mujoco.MjData], None], ids: Which) -> None:
        chosen = np.zeros(len(self._data), bool)
        chosen[ids] = True

        def share(first: int, last: int) -> None:
            for copy in (np.flatnonzero(chosen[first:last]) + first).tolist():
                data = self._data[copy]
                mujoco.mj_setState(self._model, data, self.state[copy], _INTEGRATION)
                compute(data)
                for name, results in self._outputs.items():
                    results[copy] = getattr(data, name)
                self._save(copy)

        self._threads.run(share)

    def _save(self, copy: int) -> None:
        mujoco.mj_getState(self._model, self._data[copy], self.state[copy], _INTEGRATION)
