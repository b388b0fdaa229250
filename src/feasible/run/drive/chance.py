"""Random numbers of many steps at once: what a step draws depends on the run's key and the step's number alone.

A traced step is cut in two. The part that depends on nothing else draws for a stretch of steps in one call; the rest is
told the numbers of its step. Generating a few numbers takes some thirty small kernels, of a step as of a whole stretch.
The numbers are those of the step as it was traced, and do not depend on where in a stretch a run begins.
"""

from collections.abc import Sequence
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, JaxprEqn, Literal, Var, jaxpr_as_fun
from jaxtyping import Array, Int

from feasible.compiling import soon
from feasible.run.drive.packing import Packing

STRETCH = 64  # rounds of steps whose numbers are drawn at once
LARGEST = 1 << 14  # numbers of a step: beyond, drawing costs more than the kernels around it


class Cut:
    """A program cut into what depends on its last `chance` inputs alone, and the rest."""

    def __init__(self, program: ClosedJaxpr, chance: int):
        jaxpr = program.jaxpr
        given, by_chance = jaxpr.invars[:-chance], jaxpr.invars[-chance:]
        drawn, told = set(by_chance), set(given)
        draws: list[JaxprEqn] = []
        rest: list[JaxprEqn] = []
        for equation in jaxpr.eqns:
            read = _variables(equation.invars)
            if equation.effects or read & told:
                rest.append(equation)
                told |= _variables(equation.outvars)
                continue
            draws.append(equation)
            if read & drawn:
                drawn |= _variables(equation.outvars)
            else:  # a constant: made anew where it is used
                rest.append(equation)
        used = [atom for equation in rest for atom in equation.invars] + list(jaxpr.outvars)
        self._crossing = list(dict.fromkeys(atom for atom in used if isinstance(atom, Var) and atom in drawn))
        draw = jaxpr.replace(invars=by_chance, outvars=self._crossing, eqns=draws)
        self._draw = jaxpr_as_fun(ClosedJaxpr(draw, program.consts))
        rest_of_it = jaxpr.replace(invars=[*given, *self._crossing], eqns=rest)
        self._rest = jaxpr_as_fun(ClosedJaxpr(rest_of_it, program.consts))
        self.shapes = jax.eval_shape(self.draw, *(variable.aval for variable in by_chance))
        """Of the numbers of a step."""

    def draw(self, *chance: Array) -> list[Array]:
        """The numbers of a step."""
        return list(map(_plain, self._draw(*chance)))

    def rest(self, given: Sequence[Array], numbers: Sequence[Array]) -> list[Array]:
        """What the program gives, from its other inputs and the numbers that were drawn."""
        return self._rest(*given, *map(_like, self._crossing, numbers))


class Numbers(Protocol):
    """How the numbers of a step reach its program."""

    def tables(self, key: Array, step: int) -> list[Array]:
        """What the program that follows `step` steps of a run with that key is handed."""
        ...

    def of(self, tables: list[Array], key: Array, step: Int[Array, ""]) -> list[Array]:
        """The numbers, inside the program."""
        ...


class AtEachStep(Numbers):
    """Drawn by the program itself."""

    def __init__(self, cut: Cut):
        self._cut = cut

    def tables(self, key: Array, step: int) -> list[Array]:
        return []

    def of(self, tables: list[Array], key: Array, step: Int[Array, ""]) -> list[Array]:
        return self._cut.draw(key, step)


class ByStretches(Numbers):
    """Drawn a stretch of steps at a time: a table for each kind of number, a row for each round of `every` steps."""

    def __init__(self, cut: Cut, every: int):
        self._packing, self._every = Packing(cut.shapes), every
        self._key: Array | None = None
        self._stretch = -1
        self._tables: list[Array] = []

        def draw(key: Array, first: Int[Array, ""]) -> list[Array]:
            rounds = first + jnp.arange(STRETCH, dtype=jnp.int32)
            return jax.vmap(lambda number: self._packing.pack(cut.draw(key, number * every)))(rounds)

        self._draw = jax.jit(draw, compiler_options=soon())  # one call in many steps

    def tables(self, key: Array, step: int) -> list[Array]:
        stretch = step // (self._every * STRETCH)
        if self._key is not key or self._stretch != stretch:
            self._tables = self._draw(key, np.int32(stretch * STRETCH))
            self._key, self._stretch = key, stretch
        return self._tables

    def of(self, tables: list[Array], key: Array, step: Int[Array, ""]) -> list[Array]:
        place = step // self._every % STRETCH
        rows = [jax.lax.dynamic_index_in_dim(table, place, keepdims=False) for table in tables]
        return self._packing.unpack(rows)


def drawn_for(cut: Cut, every: int, *, often: bool) -> Numbers:
    """By stretches where a program runs often and draws few numbers."""
    few = sum(shape.size for shape in cut.shapes) <= LARGEST
    return ByStretches(cut, every) if often and few else AtEachStep(cut)


def _variables(atoms: Sequence[Var | Literal]) -> set[Var]:
    return {atom for atom in atoms if isinstance(atom, Var)}


def _is_key(dtype: jnp.dtype) -> bool:
    return jnp.issubdtype(dtype, jax.dtypes.prng_key)


def _plain(number: Array) -> Array:
    """Keys as the numbers they are made of."""
    return jax.random.key_data(number) if _is_key(number.dtype) else number


def _like(variable: Var, number: Array) -> Array:
    """What `_plain` was given."""
    return jax.random.wrap_key_data(number) if _is_key(variable.aval.dtype) else number  # pyright: ignore[reportAttributeAccessIssue] -- JAX: all have one
