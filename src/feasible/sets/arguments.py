"""Reading of arguments: array-likes in, arrays of one floating dtype out, and one-sentence errors.

Shapes are always checked; values only where they are known, that is outside `jax.jit` and `jax.vmap`.
"""

from collections.abc import Sequence
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike

Numbers: TypeAlias = ArrayLike | Sequence[float] | Sequence[Sequence[float]] | Sequence[ArrayLike]


def known(*values: Array | np.ndarray) -> bool:
    """Whether all the values can be read now, i.e. none is being traced."""
    return not any(isinstance(value, Tracer) for value in values)


def read(value: Array | np.ndarray) -> Array | np.ndarray:
    """The value as NumPy has it where it is known: comparing there compiles nothing."""
    return np.asarray(value) if known(value) else value


def floats(owner: str, **fields: Numbers) -> list[Array]:
    """The fields as arrays of their common floating dtype; known values must be finite.

    Arrays keep the widest floating dtype among them; plain numbers, lists and integers follow it, and become
    JAX's default float where there is no floating array.
    """
    dtypes = [dtype for value in fields.values() if (dtype := _floating_dtype(value)) is not None]
    common = jax.dtypes.canonicalize_dtype(np.result_type(*dtypes) if dtypes else np.float64)
    return [_array(owner, name, value, common) for name, value in fields.items()]


def _floating_dtype(value: Numbers) -> np.dtype | None:
    dtype = getattr(value, "dtype", None)
    return np.dtype(dtype) if dtype is not None and jnp.issubdtype(dtype, jnp.floating) else None


def _array(owner: str, name: str, value: Numbers, dtype: np.dtype) -> Array:
    try:
        array = jnp.asarray(value, dtype=dtype)
    except (TypeError, ValueError) as cause:
        raise ValueError(f"{owner}: {name} must be numbers of a rectangular shape, got {value!r}.") from cause
    if known(array):
        require(owner, np.isfinite(read(array)), f"{name} must be finite, but has a NaN or an infinite entry")
    return array


def require(owner: str, condition: Array | np.ndarray, sentence: str, error: type[ValueError] = ValueError) -> None:
    """Raise `owner: sentence` unless the condition holds everywhere; a traced condition is not judged."""
    if known(condition) and not np.all(read(condition)):
        raise error(f"{owner}: {sentence}.")


def vectors(owner: str, **fields: Array) -> list[Array]:
    """The fields broadcast to one common vector length; scalars become constant vectors."""
    shapes = {name: value.shape for name, value in fields.items()}
    length = max((shape[0] for shape in shapes.values() if len(shape) == 1), default=1)
    for name, shape in shapes.items():
        if shape not in ((), (1,), (length,)):
            raise ValueError(f"{owner}: {name} must be a number or a vector of length {length}, but has shape {shape}.")
    if length == 0:
        raise ValueError(f"{owner}: {', '.join(fields)} must have at least one entry.")
    return [jnp.broadcast_to(value, (length,)) for value in fields.values()]


def scalar(owner: str, name: str, value: Array) -> Array:
    if value.shape not in ((), (1,)):
        raise ValueError(f"{owner}: {name} must be one number, but has shape {value.shape}.")
    return value.reshape(())
