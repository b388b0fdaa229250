"""Policy files: the weights that acting needs and a description of the algorithm, without code and without times."""

from pathlib import Path

import jax
import numpy as np
from jaxtyping import Array, PyTree

from feasible.algorithms.base import Algorithm, Spec
from feasible.algorithms.description import build_algorithm, describe
from feasible.catalogue.registry import find_task
from feasible.run.disk.archive import ArchiveError, read_archive, read_description, write_archive
from feasible.run.disk.pytrees import filled, named_arrays
from feasible.run.plain_json import brief, printable
from feasible.run.validity import check_name

FORMAT = 1


def save_policy(path: Path, algorithm: Algorithm, spec: Spec, policy: PyTree[Array], task: str = "") -> None:
    """Write a policy; `task` is the name of the task that it was trained on, where it has one."""
    description = {
        "format": FORMAT,
        "holds": "policy",
        "algorithm": describe(algorithm),
        "observation_size": spec.observation_size,
        "action_low": np.asarray(spec.low).tolist(),
        "action_high": np.asarray(spec.high).tolist(),
    }
    if task:
        description["task"] = task
    write_archive(path, description, named_arrays(policy, "policy"))


def trained_on(path: Path) -> str:
    """The name of the task that a policy file holds; nothing, if it holds none."""
    task = read_description(path).get("task", "")
    try:
        check_name("task", task)
        if task:
            find_task(str(task))
        return str(task)
    except ValueError as cause:
        raise ArchiveError(f"{path}: {cause}") from cause


def load_policy(path: Path, spec: Spec) -> tuple[Algorithm, PyTree[Array]]:
    """The algorithm and the policy in a file, for a task of the same sizes; constraints are the task's."""
    description, arrays = read_archive(path)
    if description.get("holds") != "policy" or description.get("format") != FORMAT:
        raise ArchiveError(f"{path} holds no policy that this version of feasible reads.")
    size, low, high = (_field(path, description, name) for name in ("observation_size", "action_low", "action_high"))
    if not isinstance(low, list) or not isinstance(high, list):
        raise ArchiveError(f"{path}: action_low and action_high must be lists of numbers.")
    if (size, len(low)) != (spec.observation_size, spec.action_size):
        raise ArchiveError(
            f"{path} is a policy from observations of size {brief(size)} to actions of size {len(low)}, "
            f"but the environment has sizes {spec.observation_size} and {spec.action_size}."
        )
    if low != np.asarray(spec.low).tolist() or high != np.asarray(spec.high).tolist():
        raise ArchiveError(
            f"{path} is a policy of actions between {brief(low)} and {brief(high)}, but those of the environment are "
            f"between {np.asarray(spec.low).tolist()} and {np.asarray(spec.high).tolist()}."
        )
    try:
        algorithm = build_algorithm(_field(path, description, "algorithm"))  # pyright: ignore[reportArgumentType]
        like = jax.eval_shape(lambda: algorithm.policy(algorithm.init(jax.random.key(0), spec)))
    except ArchiveError:
        raise
    except ValueError as cause:
        raise ArchiveError(f"{path}: {printable(str(cause), 400)}") from cause
    return algorithm, filled(like, arrays, "policy", str(path))


def _field(path: Path, description: dict[str, object], name: str) -> object:
    if name not in description:
        raise ArchiveError(f"{path} lacks {name}: it is damaged or of another version.")
    return description[name]
