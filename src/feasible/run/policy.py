"""Policy files: the weights that acting needs and a description of the algorithm, without code and without times."""

from pathlib import Path
from typing import cast

import jax
import numpy as np
from jaxtyping import Array, PyTree

from feasible.algorithms.base import Algorithm, Spec
from feasible.algorithms.description import build_algorithm, describe
from feasible.run.disk.archive import ArchiveError, read_archive, write_archive
from feasible.run.disk.pytrees import filled, named_arrays

FORMAT = 1


def save_policy(path: Path, algorithm: Algorithm, spec: Spec, policy: PyTree[Array]) -> None:
    description = {
        "format": FORMAT,
        "holds": "policy",
        "algorithm": describe(algorithm),
        "observation_size": spec.observation_size,
        "action_low": np.asarray(spec.low).tolist(),
        "action_high": np.asarray(spec.high).tolist(),
    }
    write_archive(path, description, named_arrays(policy, "policy"))


def load_policy(path: Path, spec: Spec) -> tuple[Algorithm, PyTree[Array]]:
    """The algorithm and the policy in a file, for a task of the same sizes; constraints are the task's."""
    description, arrays = read_archive(path)
    if description.get("holds") != "policy" or description.get("format") != FORMAT:
        raise ArchiveError(f"{path} holds no policy that this version of feasible reads.")
    size, actions = description["observation_size"], len(cast(list[float], description["action_low"]))
    if (size, actions) != (spec.observation_size, spec.action_size):
        raise ArchiveError(
            f"{path} is a policy from observations of size {size} to actions of size {actions}, "
            f"but the environment has sizes {spec.observation_size} and {spec.action_size}."
        )
    low, high = description["action_low"], description["action_high"]
    if low != np.asarray(spec.low).tolist() or high != np.asarray(spec.high).tolist():
        raise ArchiveError(
            f"{path} is a policy of actions between {low} and {high}, but those of the environment are between "
            f"{np.asarray(spec.low).tolist()} and {np.asarray(spec.high).tolist()}."
        )
    algorithm = build_algorithm(description["algorithm"])  # pyright: ignore[reportArgumentType]
    like = jax.eval_shape(lambda: algorithm.policy(algorithm.init(jax.random.key(0), spec)))
    return algorithm, filled(like, arrays, "policy", str(path))
