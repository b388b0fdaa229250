"""Observations with a structure: one float32 vector for networks, and the structure again, from it, for constraints.

    Box (of any shape)             its numbers, row by row           float32 of its shape
    Box of integers or bools       its numbers, row by row           its own dtype, of its shape
    Discrete, MultiDiscrete        a one-hot part for each choice    int32 of its shape
    MultiBinary                    its zeros and ones                int32 of its shape
    Dict, Tuple (nested)           their entries, one after another  a dict, a tuple

The vector is that of `gymnasium.spaces.flatten`, rounded to float32, which has all integers up to 2^24. Environment and
driver both judge by what `rebuild` makes of the vector, hence by the same numbers. Observations of a one-dimensional
Box of floats are vectors already.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from feasible.constraints.action_box import Boxed, Constraint, Observation
from feasible.sets.base import ActionSet


class MisfitError(ValueError):
    """An observation that is none of its space: what is where, and what it must be."""

    def __init__(self, where: str, fault: str):
        super().__init__(f"{where} {fault}")


class Layout(ABC):
    """Where the parts of an observation are in its vector. Layouts are plain values: equal ones are interchangeable."""

    @cached_property
    @abstractmethod
    def size(self) -> int:
        """Numbers of the vector."""

    @abstractmethod
    def fill(self, rows: Float[np.ndarray, "b o"], obs: Any, where: str = "obs") -> None:
        """Write a batch of observations, each leaf with a leading axis, into rows; `where` names this part."""

    @abstractmethod
    def rebuild(self, flat: Float[Array, " o"]) -> Observation:
        """The observation of a vector, as constraints see it: float32, int32, integers of a Box as it has them. Pure
        JAX."""

    @abstractmethod
    def batched(self, obs: Any, where: str = "obs") -> Any:
        """One observation as a batch of one."""

    @abstractmethod
    def entries(self, first: int = 0, where: str = "obs") -> list[tuple[str, int, int, str]]:
        """Of every part: its name, its first and last place in the vector, and how it is written there."""

    def name(self, place: int) -> str:
        """What is at a place of the vector, such as `obs['speed'], entry 1`."""
        part, first, last, _ = next(entry for entry in self.entries() if place <= entry[2])
        return f"{part}, entry {place - first}," if last > first else part

    def flat(self, obs: Any) -> Float[np.ndarray, " o"]:
        """The vector of an observation; `MisfitError` where it is none of the space."""
        return self.flats(self.batched(obs), 1)[0]

    def flats(self, obs: Any, count: int) -> Float[np.ndarray, "b o"]:
        """The vectors of a batch, as vector environments hand it over."""
        rows = np.empty((count, self.size), np.float32)
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as such
            self.fill(rows, obs)
        return rows

    def read(self, obs: Any) -> Float[np.ndarray, "b o"] | Float[np.ndarray, " o"]:
        """The vector of an observation, or the rows of a batch of them; either may be flat already."""
        try:
            return self.flat(obs)
        except MisfitError as misfit:
            count, vectors = _count(obs), _numbers(obs)
            if count is not None:
                with suppress(MisfitError):
                    return self.flats(obs, count)
            if vectors is not None and vectors.ndim in (1, 2) and vectors.shape[-1] == self.size:
                return vectors
            raise misfit from None


@dataclass(frozen=True)
class Numbers(Layout):
    """The numbers of a Box, or the zeros and ones of a MultiBinary."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    """As constraints see them; without JAX's 64-bit mode, of 32 bits at most."""

    @cached_property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def fill(self, rows: Float[np.ndarray, "b o"], obs: Any, where: str = "obs") -> None:
        rows[:] = _leaves(obs, len(rows), self.shape, where).reshape(len(rows), -1)

    def rebuild(self, flat: Float[Array, " o"]) -> Observation:
        numbers = flat.reshape(self.shape)
        if self.dtype == "float32":
            return numbers
        return jnp.round(numbers).astype(jax.dtypes.canonicalize_dtype(self.dtype))

    def batched(self, obs: Any, where: str = "obs") -> Any:
        return _one(obs)

    def entries(self, first: int = 0, where: str = "obs") -> list[tuple[str, int, int, str]]:
        return [(where, first, first + self.size - 1, "numbers")]


@dataclass(frozen=True)
class Choices(Layout):
    """The choices of a Discrete or MultiDiscrete: of each, a one where it is and zeros elsewhere."""

    shape: tuple[int, ...]
    counts: tuple[int, ...]
    starts: tuple[int, ...]
    """The least value of each choice."""

    @cached_property
    def size(self) -> int:
        return sum(self.counts)

    @cached_property
    def _firsts(self) -> NDArray[np.int64]:
        """The first place of each choice."""
        return np.cumsum([0, *self.counts[:-1]])

    def fill(self, rows: Float[np.ndarray, "b o"], obs: Any, where: str = "obs") -> None:
        chosen = _leaves(obs, len(rows), self.shape, where).reshape(len(rows), -1) - np.array(self.starts)
        outside = (chosen < 0) | (chosen >= np.array(self.counts)) | (chosen % 1 != 0)
        if outside.any():
            row, choice = np.argwhere(outside)[0]
            least = self.starts[choice]
            raise MisfitError(
                where,
                f"is {chosen[row, choice] + least}, but must be a whole number from {least} to "
                f"{least + self.counts[choice] - 1}",
            )
        rows[:] = 0.0
        rows[np.arange(len(rows))[:, None], self._firsts + chosen.astype(np.int64)] = 1.0

    def rebuild(self, flat: Float[Array, " o"]) -> Observation:
        parts = jnp.split(flat, self._firsts[1:].tolist())
        chosen = [jnp.argmax(part).astype(jnp.int32) + start for part, start in zip(parts, self.starts, strict=True)]
        return jnp.stack(chosen).reshape(self.shape)

    def batched(self, obs: Any, where: str = "obs") -> Any:
        return _one(obs)

    def entries(self, first: int = 0, where: str = "obs") -> list[tuple[str, int, int, str]]:
        return [(where, first, first + self.size - 1, "one-hot")]


@dataclass(frozen=True)
class Entries(Layout):
    """The entries of a Dict, by key, or of a Tuple, by number."""

    keys: tuple[str | int, ...]
    parts: tuple[Layout, ...]
    named: bool
    """Whether they are those of a Dict."""

    @cached_property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    def fill(self, rows: Float[np.ndarray, "b o"], obs: Any, where: str = "obs") -> None:
        self._check(obs, where)
        first = 0
        for key, part in zip(self.keys, self.parts, strict=True):
            part.fill(rows[:, first : first + part.size], obs[key], f"{where}[{key!r}]")
            first += part.size

    def rebuild(self, flat: Float[Array, " o"]) -> Observation:
        ends = np.cumsum([part.size for part in self.parts])[:-1].tolist()
        rebuilt = [part.rebuild(own) for part, own in zip(self.parts, jnp.split(flat, ends), strict=True)]
        return dict(zip(self.keys, rebuilt, strict=True)) if self.named else tuple(rebuilt)

    def batched(self, obs: Any, where: str = "obs") -> Any:
        self._check(obs, where)
        pairs = zip(self.keys, self.parts, strict=True)
        return {key: part.batched(obs[key], f"{where}[{key!r}]") for key, part in pairs}

    def entries(self, first: int = 0, where: str = "obs") -> list[tuple[str, int, int, str]]:
        found = []
        for key, part in zip(self.keys, self.parts, strict=True):
            found += part.entries(first, f"{where}[{key!r}]")
            first += part.size
        return found

    def _check(self, obs: Any, where: str) -> None:
        """Refuse what has other entries; those of a Tuple may come as a mapping from their numbers, too."""
        if isinstance(obs, Mapping):
            missing = [key for key in self.keys if key not in obs]
            if missing:
                there = ", ".join(map(repr, obs)) or "none"
                raise MisfitError(where, f"has no entry {missing[0]!r} (it has {there})")
        elif self.named:
            raise MisfitError(where, f"is a {type(obs).__name__}, but must be a dict")
        elif not isinstance(obs, Sequence) or len(obs) != len(self.keys):
            raise MisfitError(where, f"is {obs!r:.80}, but must be a tuple of {len(self.keys)}")


@dataclass(frozen=True)
class Structured:
    """A constraint on structured observations as one on their vectors."""

    constraint: Constraint
    layout: Layout

    def __call__(self, flat: Observation) -> ActionSet:
        return self.constraint(self.layout.rebuild(jnp.asarray(flat)))


def layout_of(space: gym.Space) -> Layout | None:
    """The layout of a space's observations, None for those that are vectors; or a sentence on what has none."""
    if isinstance(space, gym.spaces.Box) and len(space.shape) == 1 and space.dtype.kind == "f":
        return None
    return _layout(space, "obs")


def judged_by(constraint: Constraint, layout: Layout | None) -> Constraint:
    """The constraint on what actions are judged by: the vectors of observations that have a structure."""
    if layout is None or layout_behind(constraint) is not None:
        return constraint
    return Structured(constraint, layout)


def layout_behind(constraint: Constraint) -> Layout | None:
    """The layout of the vectors that a constraint takes for structures."""
    inner = constraint.constraint if isinstance(constraint, Boxed) else constraint
    return inner.layout if isinstance(inner, Structured) else None


def _layout(space: gym.Space, where: str) -> Layout:
    match space:
        case gym.spaces.Dict():
            parts = {key: _layout(own, f"{where}[{key!r}]") for key, own in space.spaces.items()}
            return Entries(tuple(parts), tuple(parts.values()), named=True)
        case gym.spaces.Tuple():
            parts = [_layout(own, f"{where}[{place}]") for place, own in enumerate(space.spaces)]
            return Entries(tuple(range(len(parts))), tuple(parts), named=False)
        case gym.spaces.Box() if len(space.shape) == 3 and space.dtype == np.uint8:
            raise ValueError(
                f"env: {where} is an image, {space}, but networks here take vectors; observe in numbers what it shows "
                "(agents of other libraries may see images in a constrained environment)."
            )
        case gym.spaces.Box():
            return Numbers(space.shape, "float32" if space.dtype.kind == "f" else space.dtype.name)
        case gym.spaces.MultiBinary():
            return Numbers(space.shape, "int32")
        case gym.spaces.Discrete():
            return Choices((), (int(space.n),), (int(space.start),))
        case gym.spaces.MultiDiscrete():
            counts, starts = (tuple(np.ravel(numbers).tolist()) for numbers in (space.nvec, space.start))
            return Choices(space.shape, counts, starts)
        case _:
            raise ValueError(
                f"env: {where} is of the space {space}, which is not one of numbers of a fixed size; observe a Box, "
                "Discrete, MultiBinary or MultiDiscrete, or a Dict or Tuple of these."
            )


def _leaves(obs: Any, count: int, shape: tuple[int, ...], where: str) -> NDArray:
    """The numbers of a part in a batch."""
    numbers = _numbers(obs, None)
    if numbers is None:
        raise MisfitError(where, f"is {obs!r:.80}, but must be numbers of shape {shape}")
    if numbers.shape != (count, *shape):
        raise MisfitError(where, f"has shape {numbers.shape[1:]}, but the observation space has shape {shape}")
    return numbers


def _one(obs: Any) -> Any:
    numbers = _numbers(obs, None)
    return obs if numbers is None else numbers[None]


def _numbers(obs: Any, dtype: type[np.float32] | None = np.float32) -> NDArray | None:
    """The array of what is one, of numbers."""
    try:
        numbers = np.asarray(obs, dtype)
    except (TypeError, ValueError):
        return None
    return numbers if numbers.dtype.kind in "fiub" else None


def _count(obs: Any) -> int | None:
    """The length of a batch: that of its first part."""
    while isinstance(obs, Mapping | tuple) and len(obs):
        obs = next(iter(obs.values())) if isinstance(obs, Mapping) else obs[0]
    numbers = _numbers(obs)
    return len(numbers) if numbers is not None and numbers.ndim else None
