"""What sets answer, as differentiable functions of batched tensors.

The first argument of each is a feasible set, or a constraint, a function from one observation to its set; then `obs`
has one row per row of the points. A set that does not depend on the observation needs no `obs`. Rows are float32 or
float64, on the CPU or on a GPU that JAX has too, and any number of axes before the last is a batch.

Derivatives are those of the JAX side, in the points and in the observation; of first order only. A constraint is
traced in the tensors' precision. A set that was made beforehand in float32 keeps its rounded numbers when tensors are
float64: make it inside `with jax.enable_x64(True):` to have them exact.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The type checker also runs where PyTorch is not installed, and then takes this folder for it.

from collections.abc import Callable
from typing import Literal, overload

import jax.numpy as jnp
from jaxtyping import Array, Float

from feasible.algorithms import maps
from feasible.algorithms.densities import radial_log_det
from feasible.algorithms.maps import Hull
from feasible.constraints import Constraint
from feasible.sets.base import ActionSet
from feasible.torch.crossing import Observations, Tensor, crossed

Region = ActionSet | Constraint


def project(region: Region, z: Tensor, obs: Observations = None) -> Tensor:
    """argmin ||a - z||_2 over the set, for z of shape (..., n); its derivative is the exact Jacobian's."""
    return crossed("project", _project, region, obs, z)[0]


def maximise_linear(region: Region, g: Tensor, obs: Observations = None) -> Tensor:
    """An argmax of <g, a> over the set, for g of shape (..., n): the Frank-Wolfe oracle."""
    return crossed("maximise_linear", _maximise_linear, region, obs, g)[0]


@overload
def alpha(region: Region, y: Tensor, obs: Observations = None, *, log_det: Literal[False] = False) -> Tensor: ...
@overload
def alpha(region: Region, y: Tensor, obs: Observations = None, *, log_det: Literal[True]) -> tuple[Tensor, Tensor]: ...
def alpha(
    region: Region, y: Tensor, obs: Observations = None, *, log_det: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """c + B y / max(1, g(B y)): itself inside, else where the ray from the centre c leaves the set.

    y has shape (..., d), d the dimension of the set's hull: n, but for sets with equalities. With `log_det` also the
    logarithm of the map's |determinant|: 0 inside and -inf outside, where a ray becomes one point.
    """
    if not log_det:
        return crossed("alpha", _alpha, region, obs, y)[0]
    action, volume = crossed("alpha", _alpha_log_det, region, obs, y)
    return action, volume


@overload
def radial(region: Region, y: Tensor, obs: Observations = None, *, log_det: Literal[False] = False) -> Tensor: ...
@overload
def radial(region: Region, y: Tensor, obs: Observations = None, *, log_det: Literal[True]) -> tuple[Tensor, Tensor]: ...
def radial(
    region: Region, y: Tensor, obs: Observations = None, *, log_det: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """c + B y tanh(g) / g, g = g(B y): one to one from the whole space to the set's interior.

    y is as for `alpha`. With `log_det` also (d - 1) log(tanh(g) / g) + 2 log sech(g), by which densities change.
    """
    if not log_det:
        return crossed("radial", _radial, region, obs, y)[0]
    action, volume = crossed("radial", _radial_log_det, region, obs, y)
    return action, volume


def _project(region: ActionSet, z: Float[Array, " n"]) -> Float[Array, " n"]:
    return region.project(sized(region.dim, z, "the set's dimension"))


def _maximise_linear(region: ActionSet, g: Float[Array, " n"]) -> Float[Array, " n"]:
    return region.maximise_linear(sized(region.dim, g, "the set's dimension"))


def _alpha(region: ActionSet, y: Float[Array, " d"]) -> Float[Array, " n"]:
    return _brought(maps.alpha, region, y)


def _radial(region: ActionSet, y: Float[Array, " d"]) -> Float[Array, " n"]:
    return _brought(maps.radial, region, y)


def _alpha_log_det(region: ActionSet, y: Float[Array, " d"]) -> tuple[Array, Array]:
    g = _gauge(region, y)
    return _alpha(region, y), jnp.where(g > 1, -jnp.inf, jnp.zeros_like(g))


def _radial_log_det(region: ActionSet, y: Float[Array, " d"]) -> tuple[Array, Array]:
    return _radial(region, y), radial_log_det(_gauge(region, y), region.hull_dim)


def _brought(inward: Callable[..., Array], region: ActionSet, y: Float[Array, " d"]) -> Float[Array, " n"]:
    hull = Hull.of(region)
    return hull.action(inward(region, hull, sized(hull.dim, y, "the dimension of the set's hull")))


def _gauge(region: ActionSet, y: Float[Array, " d"]) -> Float[Array, ""]:
    hull = Hull.of(region)
    return maps.gauge(region, hull.centre, hull.lifted(y))


def sized(size: int, point: Array, what: str) -> Array:
    """The point, or a sentence where it is not of that size; read while the program is traced."""
    if point.shape != (size,):
        raise ValueError(f"expected tensors of shape (..., {size}), {what}, got (..., {point.shape[-1]}).")
    return point
