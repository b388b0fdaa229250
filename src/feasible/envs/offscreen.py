"""Pictures without a window: MuJoCo, ours or a user's, draws with EGL where no window could open."""

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from jaxtyping import UInt8

NO_PICTURES = (
    "render needs OpenGL off-screen: install EGL (Debian: libegl1 libgl1-mesa-dri, with MUJOCO_GL=egl)"
    " or OSMesa (libosmesa6, with MUJOCO_GL=osmesa)."
)


def picture(render: Callable[[], object], failing: str = NO_PICTURES) -> UInt8[np.ndarray, "height width 3"]:
    """What an environment's `render` draws; where it cannot, the sentence `failing`."""
    with _offscreen(), warnings.catch_warnings():
        # GLFW warns before it fails; the failure is what gets reported.
        warnings.simplefilter("ignore")
        try:
            frame = render()
        except Exception as failure:
            raise RuntimeError(failing) from failure
    return np.asarray(frame)


@contextmanager
def _offscreen() -> Iterator[None]:
    """Let MuJoCo draw with EGL while the block runs, where nothing is chosen and no window could open."""
    headless = sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    if not headless or "MUJOCO_GL" in os.environ:
        yield
        return
    os.environ["MUJOCO_GL"] = "egl"
    try:
        yield
    finally:
        del os.environ["MUJOCO_GL"]
