"""The contract of a feasible set: one convex set of actions that answers every question a method asks.

A set is an immutable pytree of arrays. One object is one set; a batch of sets is the same object under `jax.vmap`.
All answers are pure functions, correct in float32 and float64, and safe inside `jax.jit` and `jax.grad`.
"""

import functools
import inspect
import types
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, TypeVar, final, overload

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from feasible.compiling import inlined_or_soon
from feasible.sets.arguments import Numbers
from feasible.solve.precision import full_precision

if TYPE_CHECKING:
    from feasible.sets.box import Bound

Owner = TypeVar("Owner")
Answer = TypeVar("Answer")

# Share of the set's scale by which an executed action may leave it: the one tolerance of the library.
TOLERANCE = 1e-5


@overload
def compiled(method: Callable[[Owner], Answer]) -> Callable[[Owner], Answer]: ...


@overload
def compiled(method: Callable[[Owner, Array], Answer]) -> Callable[[Owner, Numbers], Answer]: ...


@overload
def compiled(method: Callable[[Owner, Array, Array], Answer]) -> Callable[[Owner, Numbers, Numbers], Answer]: ...


def compiled(method: Callable[..., Answer]) -> Callable[..., Answer]:
    """Accept array-likes of shape (dim,), cast them to the set's dtype, and compile once per shape.

    Inside an outer transformation the call is inlined, so it costs nothing there.
    """
    traced = inlined_or_soon(full_precision(method))

    @functools.wraps(method)
    def call(self: "ActionSet", *points: Numbers) -> Answer:
        return traced(self, *(self.point(value) for value in points))

    return call


_ENTRY = ", entry "


def entries(name: str, count: int) -> tuple[str, ...]:
    """The name of a group of residuals, once for each entry of the action, of which each bounds one."""
    return tuple(f"{name}{_ENTRY}{i}" for i in range(count))


def rows(name: str, count: int) -> tuple[str, ...]:
    """The name of a group of residuals, once for each row of its matrix."""
    return tuple(f"{name}, row {i}" for i in range(count))


def drawn(method: Callable[[Owner, PRNGKeyArray], Array]) -> Callable[[Owner, PRNGKeyArray], Array]:
    """Compile a method of a random key once."""
    return inlined_or_soon(full_precision(method))


@jax.tree_util.register_pytree_node_class
class BoundMethod:
    """A method of a set: hashed and compared like Python's own, by the identity of its set, so that `jax.jit` takes it
    for a function; and a pytree of its set's arrays like Equinox's, so that it may be an argument, too.

    Equinox's own is hashed by the arrays of its module, which have no hash.
    """

    def __init__(self, method: Callable, feasible_set: "ActionSet"):
        functools.update_wrapper(self, types.MethodType(method, feasible_set))
        self.__func__, self.__self__ = method, feasible_set

    def __call__(self, *arguments: object, **options: object) -> object:
        return self.__func__(self.__self__, *arguments, **options)

    def __hash__(self) -> int:
        return hash((self.__func__, id(self.__self__)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BoundMethod) and self.__func__ == other.__func__ and self.__self__ is other.__self__

    def tree_flatten(self) -> tuple[tuple["ActionSet"], Callable]:
        return (self.__self__,), self.__func__

    @classmethod
    def tree_unflatten(cls, method: Callable, children: tuple["ActionSet"]) -> "BoundMethod":
        return cls(method, *children)


def _shown(value: object) -> str:
    """A field of a set as people read it: few numbers as they are, many or unknown ones as their type and shape."""
    if isinstance(value, jax.Array | np.ndarray) and not isinstance(value, Tracer) and value.size <= SHOWN:
        return " ".join(np.array2string(np.asarray(value), precision=4, separator=", ").split())
    return eqx.tree_pformat(value) if eqx.is_array_like(value) else repr(value)


SHOWN = 16  # numbers


class ActionSet(eqx.Module):
    """One non-empty, closed, bounded, convex set of actions in R^dim."""

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = full_precision(cls.__init__)  # what a set works out beforehand is to be exact, too

    if not TYPE_CHECKING:

        def __getattribute__(self, name: str) -> object:
            found = object.__getattribute__(self, name)
            bound = isinstance(found, types.MethodType) and found.__self__ is self
            return BoundMethod(found.__func__, self) if bound else found

    def __repr__(self) -> str:
        given, known = inspect.signature(type(self)).parameters, [f.name for f in fields(self)]
        named = [name for name in known if name in given]
        shown = named if len(named) == len(given) else known  # the arguments, where they are kept by their names
        return f"{type(self).__name__}({', '.join(f'{name}={_shown(getattr(self, name))}' for name in shown)})"

    @property
    @abstractmethod
    def dim(self) -> int:
        """Number of action coordinates."""

    @property
    @abstractmethod
    def scale(self) -> Float[Array, ""]:
        """Largest absolute coordinate that the set's bounds allow: the unit of every tolerance."""

    @abstractmethod
    def residuals(self, a: Numbers, /) -> Float[Array, " m"]:
        """Return left-hand minus right-hand side of every constraint, in the constraint's own units; <= 0 inside."""

    @abstractmethod
    def residual_names(self) -> tuple[str, ...]:
        """Return the names of the residuals, as error messages show them."""

    @abstractmethod
    def slopes(self) -> Float[Array, " m"]:
        """Return bounds on the Lipschitz constants of the residuals in the Euclidean norm."""

    @abstractmethod
    def project(self, z: Numbers, /) -> Float[Array, " n"]:
        """Return argmin ||a - z||_2 over the set; the exact Jacobian exists almost everywhere."""

    @abstractmethod
    def maximise_linear(self, g: Numbers, /) -> Float[Array, " n"]:
        """Return an argmax of <g, a> over the set: the Frank-Wolfe oracle."""

    @abstractmethod
    def exit_distance(self, origin: Numbers, direction: Numbers, /) -> Float[Array, ""]:
        """Return the largest t >= 0 with origin + t * direction inside, from an origin inside; inf for direction 0."""

    @abstractmethod
    def centre(self) -> Float[Array, " n"]:
        """Return a point well inside: in the relative interior."""

    @abstractmethod
    def sample(self, key: PRNGKeyArray, /) -> Float[Array, " n"]:
        """Draw a random point of the set; each set states its distribution."""

    @abstractmethod
    def direction(self, key: PRNGKeyArray, /) -> Float[Array, " n"]:
        """Draw a random direction in the set's affine hull, in proportion to the set's widths."""

    @abstractmethod
    def diameter(self) -> Float[Array, ""]:
        """Return the largest distance between two points (D_s in the paper), or an upper bound if the set says so."""

    def execute(self, z: Numbers, /) -> Float[Array, " n"]:
        """Return the action to execute for the proposal z: the projection, or the nearest point of an integer set."""
        return self.project(z)

    def accepts(self, a: Numbers, /) -> Bool[Array, ""]:
        """Return whether a proposal counts as feasible: `contains`, except for sets with an equality, which no network
        meets."""
        return self.contains(a)

    def integrality(self, a: Numbers, /) -> Float[Array, ""]:
        """Return how far a point inside is from one that can be executed: zero except for integer sets."""
        return jnp.zeros((), self.dtype)

    @property
    def pieces(self) -> tuple[Callable[[Float[Array, " n"]], Float[Array, " n"]], ...]:
        """Projections on sets that meet in this one: what an intersection splits it into."""
        return (self.project,)

    @property
    def hull_dim(self) -> int:
        """d: the dimension of the set's affine hull, known without its values; `dim` unless the set has equalities."""
        return self.dim

    def hull_basis(self) -> Float[Array, "n d"]:
        """Return orthonormal columns that span the affine hull: a = centre + basis @ y for all a inside."""
        return jnp.eye(self.dim, dtype=self.dtype)

    @final
    def coupling(self, a: Numbers) -> Float[Array, ""]:
        """The worst residual, bounds of single entries left out where there are others.

        Those are the action box's as a rule, which proposals are clipped to: at a clipped one they are 0 whatever else.
        """
        several = [k for k, name in enumerate(self.residual_names()) if _ENTRY not in name]
        residuals = self.residuals(a)
        return jnp.max(residuals[jnp.array(several)] if several else residuals)

    @final
    @property
    def dtype(self) -> "np.dtype":
        return jax.tree.leaves(self)[0].dtype

    @final
    @property
    def tolerance(self) -> Float[Array, ""]:
        """Violation up to which a point counts as inside: 1e-5 of the set's scale."""
        return TOLERANCE * self.scale

    def in_action_units(self, residuals: Float[Array, " m"]) -> Float[Array, " m"]:
        """Return lower bounds on the distance to where each residual is zero: residuals divided by their slopes.

        One that does not change with the action stays as it is.
        """
        slopes = self.slopes()
        return residuals / jnp.where(slopes > 0, slopes, 1.0)

    @final
    @compiled
    def violation(self, a: Float[Array, " n"]) -> Float[Array, ""]:
        """max(0, max_i r_i(a) / slope_i): the largest residual, brought to action units.

        That makes a violation at most the distance to the set, so that one tolerance serves weights of a thousand, of a
        thousandth and a unit box alike. A point that is not finite has violation NaN.
        """
        worst = jnp.max(self.in_action_units(self.residuals(a)))
        return jnp.where(jnp.all(jnp.isfinite(a)), jnp.maximum(worst, 0.0), jnp.nan)

    @final
    def contains(self, a: Numbers, tol: float | Float[Array, ""] | None = None) -> Bool[Array, ""]:
        """Return whether a is inside up to `tol` (default: `tolerance`); never true for a NaN."""
        return self.violation(a) <= (self.tolerance if tol is None else tol)

    @final
    @compiled
    def support(self, g: Float[Array, " n"]) -> Float[Array, ""]:
        """Return max <g, a> over the set."""
        return jnp.vdot(g, self.maximise_linear(g))

    @final
    @compiled
    def frank_wolfe_gap(self, a: Float[Array, " n"], g: Float[Array, " n"]) -> Float[Array, ""]:
        """Return max <g, c - a> over c in the set: the first-order distance of a from optimality, >= 0 inside."""
        return jnp.vdot(g, self.maximise_linear(g) - a)

    @final
    def point(self, value: Numbers) -> Float[Array, " n"]:
        """The value as a vector of the set's length and dtype, or a one-sentence error."""
        vector = jnp.asarray(value, dtype=self.dtype)
        if vector.shape != (self.dim,):
            raise ValueError(
                f"{type(self).__name__}: expected a vector of shape ({self.dim},), got shape {vector.shape}; "
                "batches go through jax.vmap."
            )
        return vector

    def clipped(self, low: "Bound", high: "Bound", /) -> "ActionSet | None":
        """The part in the box {low <= a <= high}, where a set of the same kind says it; None where none does.

        A set whose own bounds are known to lie in the box answers itself. Bounds may be infinite.
        """
        return None

    @final
    def within(self, low: Numbers, high: Numbers) -> "ActionSet":
        """Return the part in the box {low <= a <= high}, or the set itself if it lies there up to `tolerance`.

        Bounds may be infinite. Where the set is known, its extents say so, at the cost of 2 dim linear maximisations.
        """
        from feasible.sets.merging import cut  # may be an intersection: import on use

        return cut(self, low, high)

    @final
    def __and__(self, other: "ActionSet") -> "ActionSet":
        from feasible.sets.merging import intersect  # an intersection is made of sets: import on use

        return intersect(self, other)
