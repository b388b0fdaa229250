"""Films: one episode of a policy as a file, a .gif by Pillow or an .mp4 by ffmpeg."""

import warnings
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from feasible.algorithms.spec import spec_of
from feasible.catalogue import registry
from feasible.constraints.outcomes import flattened
from feasible.envs.offscreen import NO_PICTURES, picture
from feasible.extras import require
from feasible.run.drive.programs import Policy
from feasible.run.drive.wire import wire_of

KINDS = (".mp4", ".gif")
OPENING = 16
"""Frames of which a .gif takes its colours."""

NO_FILM = f"video: the environment could not draw a frame. If it is one of MuJoCo's, {NO_PICTURES}"

Frame = UInt8[np.ndarray, "height width 3"]


def check_film(path: Path) -> None:
    """Refuse a film that cannot be written here, before an episode is played for it."""
    if path.suffix.lower() not in KINDS:
        raise ValueError(f"video must end in {' or '.join(KINDS)}, not {path.name!r}.")
    if path.suffix.lower() == ".mp4":
        require("video", "A film as .mp4")


def film(
    act: Policy, policy: object, task: str, seed: int, path: Path, width: int | None = None, most: int | None = None
) -> None:
    """Write one episode, or its first `most` steps, as a film of at most `width` pixels; frames go out as they come."""
    check_film(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    env = registry.make(task, render_mode="rgb_array")
    rate = float(env.metadata.get("render_fps", 30))
    try:
        frames = (_narrow(frame, width) for frame in _frames(act, policy, env, seed, most))
        (_write_mp4 if path.suffix.lower() == ".mp4" else _write_gif)(path, frames, rate)
    finally:
        env.close()


def _frames(act: Policy, policy: object, env, seed: int, most: int | None) -> Iterator[Frame]:
    wire, layout = wire_of(spec_of(env)), env.layout
    obs, _ = env.reset(seed=seed)
    step, running = 0, True
    while running:
        yield picture(env.render, NO_FILM)
        seen = np.asarray(flattened(obs, layout, 0), np.float32)
        row = np.asarray(act(policy, seen[None]))[0]
        obs, _, terminated, truncated, _ = env.step(wire.executed(row).copy())
        step += 1
        running = not (terminated or truncated or step == most)


def _narrow(frame: Frame, width: int | None) -> Frame:
    if width is None or frame.shape[1] <= width:
        return frame
    from PIL import Image

    size = width, max(1, round(frame.shape[0] * width / frame.shape[1]))
    return np.asarray(Image.fromarray(frame).resize(size, Image.Resampling.LANCZOS))


def _write_gif(path: Path, frames: Iterator[Frame], rate: float) -> None:
    from PIL import Image

    # One palette for all: colours of their own make frames flicker and files large.
    opening = list(islice(frames, OPENING))
    palette = Image.fromarray(np.concatenate(opening)).quantize(colors=256)
    first, *rest = opening
    shown = (
        Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in chain(rest, frames)
    )
    Image.fromarray(first).quantize(palette=palette, dither=Image.Dither.NONE).save(
        path, save_all=True, append_images=shown, duration=max(20, round(1000 / rate)), loop=0
    )


def _write_mp4(path: Path, frames: Iterator[Frame], rate: float) -> None:
    import imageio.v2 as imageio  # brings its encoders along: only for films

    with warnings.catch_warnings(), imageio.get_writer(path, fps=rate, macro_block_size=1) as writer:
        # JAX warns of every fork; this one only starts the encoder.
        warnings.filterwarnings("ignore", message=r"os\.fork\(\) was called", category=RuntimeWarning)
        for frame in frames:
            height, width = frame.shape[:2]
            writer.append_data(frame[: height - height % 2, : width - width % 2])  # pyright: ignore[reportAttributeAccessIssue]
