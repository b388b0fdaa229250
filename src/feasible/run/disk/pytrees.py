"""Pytrees as named arrays and back: what checkpoints and policy files hold."""

from collections.abc import Mapping
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree
from numpy.typing import NDArray

from feasible.run.disk.archive import ArchiveError

Tree = TypeVar("Tree")


def named_arrays(tree: PyTree, prefix: str) -> dict[str, NDArray]:
    """Every leaf under its path in the tree."""
    paths, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {prefix + jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in paths}


def filled(like: Tree, arrays: Mapping[str, NDArray], prefix: str, source: str) -> Tree:
    """The tree of the shape of `like` (arrays or their shapes) with the named arrays as leaves."""
    paths, structure = jax.tree_util.tree_flatten_with_path(like)
    leaves = []
    for path, leaf in paths:
        name = prefix + jax.tree_util.keystr(path)
        if name not in arrays:
            raise ArchiveError(f"{source} lacks {name}: it belongs to another algorithm or version.")
        array = arrays[name]
        if array.shape != leaf.shape or array.dtype != leaf.dtype:
            raise ArchiveError(
                f"{source} holds {name} as {array.dtype}{list(array.shape)} where {leaf.dtype}{list(leaf.shape)} "
                "is needed: it belongs to another algorithm, task or setting."
            )
        leaves.append(jnp.array(array))
    return jax.tree.unflatten(structure, leaves)
