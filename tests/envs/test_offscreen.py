"""Pictures without a window: what MuJoCo draws with, and what is said where nothing can be drawn."""

import os
import sys

import numpy as np
import pytest

from feasible.envs.offscreen import picture


@pytest.mark.parametrize(
    ("given", "seen"),
    [({}, "egl" if sys.platform == "linux" else None), ({"DISPLAY": ":0"}, None), ({"MUJOCO_GL": "osmesa"}, "osmesa")],
)
def test_egl_is_chosen_while_it_draws_where_nothing_else_is(
    given: dict[str, str], seen: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    chosen: list[str | None] = []

    def render() -> np.ndarray:
        chosen.append(os.environ.get("MUJOCO_GL"))
        return np.zeros((2, 3, 3), np.uint8)

    assert picture(render).shape == (2, 3, 3)
    assert chosen == [seen]
    assert os.environ.get("MUJOCO_GL") == given.get("MUJOCO_GL")


def test_a_failure_is_one_sentence_with_its_cause() -> None:
    def render() -> None:
        raise OSError("no context")

    with pytest.raises(RuntimeError, match="render needs OpenGL off-screen: install EGL") as raised:
        picture(render)
    assert str(raised.value.__cause__) == "no context"
