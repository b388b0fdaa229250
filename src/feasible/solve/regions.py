"""Projection on a polytope whose critical regions are few and known beforehand: one product instead of a search.

The projection of z on {x : rows x <= limits} lies on some set of independent rows, and is then affine in z, as are the
multipliers of these rows. It is the one for which no other row is violated and no multiplier is negative: in which
region of space z lies. For all sets at once these conditions are one product with z. No round waits for another, which
is what an accelerator needs; a core is faster with `feasible.solve.qp`.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jax.lax import stop_gradient
from jaxtyping import Array, Float, Int

from feasible.solve.working_set import WorkingSet, moved_with_rows

TOGETHER = 1024  # points looked up at once: up to a megabyte each


class Regions(eqx.Module):
    """Of a polytope {x : rows x <= limits}, for each set of independent rows that can be met together:"""

    held: WorkingSet
    """The set, with a leading axis."""
    slopes: Float[Array, "r c n"]
    """How the violations of the other rows, and the multipliers of its own with a minus, change with z."""
    levels: Float[Array, "r c"]
    """These at z = 0."""


def nearest_by_region(
    z: Float[Array, " n"], rows: Float[Array, "m n"], limits: Float[Array, " m"], regions: Regions
) -> Float[Array, " n"]:
    """argmin ||x - z|| over the polytope {x : rows x <= limits} of these regions; O(regions rows n).

    Derivatives are those of the projection on the affine set of the held rows, exact in z, rows and limits wherever
    that set is unique.
    """

    places = _lookup(*map(stop_gradient, (z[None], regions.slopes, regions.levels)))
    found = places[0]
    working = WorkingSet(regions.held.held[found], regions.held.inverse[found], regions.held.null[found])
    x = working.null @ z + jnp.where(working.held, limits, 0.0) @ working.inverse
    return moved_with_rows(x, z, working.inverse @ (z - x), rows, limits, working)


@custom_vmap
def _lookup(
    points: Float[Array, "p n"], slopes: Float[Array, "r c n"], levels: Float[Array, "r c"]
) -> Int[Array, " p"]:
    """In which region every point is: where its worst condition is the least, to which rounding makes no difference."""

    def one(z: Float[Array, " n"]) -> Int[Array, ""]:
        return jnp.argmin(jnp.max(slopes @ z + levels, axis=1))

    return jax.vmap(one)(points) if len(points) <= TOGETHER else jax.lax.map(one, points, batch_size=TOGETHER)


@_lookup.def_vmap
def _(size: int, batched: list[bool], points: Array, slopes: Array, levels: Array) -> tuple[Int[Array, "b p"], bool]:
    """Points of however many batches are one batch, of which so many at a time are looked up; other tables are not."""
    if not any(batched[1:]):
        return _lookup(points.reshape(-1, points.shape[-1]), slopes, levels).reshape(size, -1), True
    given = (
        leaf if moves else jnp.broadcast_to(leaf, (size, *leaf.shape))
        for leaf, moves in zip((points, slopes, levels), batched, strict=True)
    )
    return jax.lax.map(lambda one: _lookup(*one), tuple(given)), True
