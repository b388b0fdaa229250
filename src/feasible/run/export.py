"""Exported policies: one file that maps observations to feasible actions, for machines without this library.

A zip of `description.json` and `policy.stablehlo`. The program is StableHLO, serialised by `jax.export`: the actor, the
constraint at the raw observation, and the execution into its set, with the weights inside, in float32, for batches of
any length, on CPUs and CUDA GPUs alike. JAX, NumPy and flatbuffers, with which JAX reads
programs, are all that running it takes:

    with zipfile.ZipFile("policy.zip") as archive:
        policy = jax.export.deserialize(bytearray(archive.read("policy.stablehlo")))
    answer = policy.call(observations)  # float32, a row an observation: "action", "violation", "tolerance"

An action may be executed where violation <= tolerance: always, but for observations that are not finite or whose set is
empty.

There is no ONNX file. Of the converters for JAX, jax2onnx is kept up; version 0.17.1 carries policies on balls, but not
those on budgets and allocations (it has no rule for a choice by platform) nor on polytopes (nor for the scatters of
active-set methods), so a format that only some constraints could have would be a promise half kept.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from feasible.algorithms.base import Algorithm, Spec
from feasible.algorithms.description import describe
from feasible.catalogue.registry import find_task
from feasible.extras import require
from feasible.run.disk.archive import ArchiveError, read_description, write_members
from feasible.run.drive.step import Step
from feasible.run.drive.wire import wire_of
from feasible.run.folder import versions
from feasible.run.loading import TrainedRun, load_run

FORMAT = 1
HOLDS = "exported policy"
PROGRAM = "policy.stablehlo"
PLATFORMS = ("cpu", "cuda")


def export_run(run: Path, out: Path | None, task: str | None = None) -> Path:
    """Write the policy of a run's folder (or of a policy file) as an export, beside it if nothing else is said."""
    loaded = load_run(run, task)
    out = loaded.path.with_name("policy.zip") if out is None else out
    export_policy(out, loaded.algorithm, loaded.spec, loaded.policy, _words_of(loaded))
    return out


def export_policy(
    path: Path, algorithm: Algorithm, spec: Spec, policy: PyTree[Array], about: Mapping[str, object] | None = None
) -> None:
    """Write the policy with its constraint. An export that is there is replaced, any other file is not."""
    _check_place(path)
    exported = _program(algorithm, spec, policy)
    feasible_set = jax.eval_shape(spec.feasible_set, jax.ShapeDtypeStruct((spec.observation_size,), jnp.float32))
    description = {
        "format": FORMAT,
        "holds": HOLDS,
        "program": {
            "file": PROGRAM,
            "read_with": "jax.export.deserialize(bytearray(...)).call(observations)",
            "calling_convention": exported.calling_convention_version,
            "platforms": list(exported.platforms),
        },
        "input": {"observations": {"shape": ["batch", spec.observation_size], "dtype": "float32", **_parts(spec)}},
        "output": {
            "action": {"shape": ["batch", spec.action_size], "dtype": "float32"},
            "violation": {"shape": ["batch"], "dtype": "float32"},
            "tolerance": {"shape": ["batch"], "dtype": "float32"},
        },
        "execute_where": "violation <= tolerance",
        "action_low": spec.low.tolist(),
        "action_high": spec.high.tolist(),
        "set": {"kind": type(feasible_set).__name__, "residuals": list(feasible_set.residual_names())},
        "algorithm": describe(algorithm),
        "versions": versions(),
        **(about or {}),
    }
    write_members(path, description, {PROGRAM: bytes(exported.serialize())})


def _program(algorithm: Algorithm, spec: Spec, policy: PyTree[Array]) -> jax.export.Exported:
    """The policy as a function of a batch of observations of any length, lowered for all platforms."""

    wire = wire_of(spec)

    def act(observations: Float[Array, "c o"]) -> dict[str, Array]:
        rows = jax.vmap(partial(Step(algorithm, spec).answer, policy))(observations)
        violation, tolerance = wire.certificate(rows)
        return {"action": wire.executed(rows), "violation": violation, "tolerance": tolerance}

    (batch,) = jax.export.symbolic_shape("batch")
    observations = jax.ShapeDtypeStruct((batch, spec.observation_size), jnp.float32)
    with _no_locations():
        return jax.export.export(jax.jit(act), platforms=PLATFORMS)(observations)


def _parts(spec: Spec) -> dict[str, object]:
    """Where the parts of an observation with a structure are in its vector: [first place, last place, how]."""
    return {} if spec.layout is None else {"parts": {part: place for part, *place in spec.layout.entries()}}


@contextmanager
def _no_locations() -> Iterator[None]:
    """Lower programs without the places in source files that they come from: those are paths of this machine."""
    before = jax.config.jax_traceback_in_locations_limit  # pyright: ignore[reportAttributeAccessIssue]
    jax.config.update("jax_traceback_in_locations_limit", 0)
    try:
        yield
    finally:
        jax.config.update("jax_traceback_in_locations_limit", before)


def _check_place(path: Path) -> None:
    require("export", "export")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name the file to write in it.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent} is no folder: make it first, or choose another.")
    if path.exists():
        try:
            description = read_description(path)
        except ArchiveError:
            description = {}
        if description.get("holds") != HOLDS:
            raise FileExistsError(f"{path} is there already and is no exported policy: choose another file.")


def _words_of(loaded: TrainedRun) -> dict[str, object]:
    task, config = find_task(loaded.task), loaded.config
    words: dict[str, object] = {"task": task.name, "title": task.title, "constraint": task.words}
    if config is not None:
        words |= {"algo": config.algo, "variant": config.variant, "preset": config.preset, "seed": config.seed}
    return words
