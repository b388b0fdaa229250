"""An ellipsoid in a box: quadratic energy or heat limits on actuators."""

import jax
import jax.numpy as jnp
from jax.lax import stop_gradient
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from feasible.compiling import inlined_or_soon
from feasible.errors import EmptySetError
from feasible.sets.arguments import Numbers, floats, read, require, scalar, vectors
from feasible.sets.base import ActionSet, compiled, drawn, entries
from feasible.sets.box import Bound, box_exit, narrower
from feasible.sets.sampling import gaussian, hit_and_run
from feasible.solve.breakpoints import clamp
from feasible.solve.exact import exact_spectrum
from feasible.solve.precision import full_precision
from feasible.solve.quadratic import quadratic_exit
from feasible.solve.splitting import Projection, minimise_over_intersection
from feasible.solve.tangent import with_tangent_of
from feasible.solve.two_budgets import Budgets, highest_in_budgets, nearest_in_budgets

NEWTON_STEPS = 10
PULLS = 2  # steps in after the splitting, to the least energy; the first is along the normal


class EllipsoidBox(ActionSet):
    """{a : a'Q a <= level, |a_i| <= bound_i} for a positive semi-definite Q, which may depend on the state.

    A vector for Q is the diagonal of one. Then the projection is a_i = clip(z_i / (1 + m Q_i)) with one multiplier m, a
    root of one variable to rounding (`feasible.solve.two_budgets`), and linear maximisation likewise: as a rule 3 to 8
    rounds of O(n). A matrix, even one that is diagonal, is taken for any: a traced one does not show its zeros.

    The ellipsoid alone has a projection by its secular equation (`nearest_in_ellipsoid`); box and ellipsoid together
    are solved by Newton on their splitting (`feasible.solve.splitting`), then pulled in where rounding has left the
    ellipsoid: error about 1e-9 of scale in float64, 1e-5 in float32. Linear maximisation likewise. Cost:
    one eigendecomposition at construction and, as a rule, 3 to 20 rounds of O(n^3). Q = 0 leaves the box; level 0
    leaves the null space of Q in the box. Samples: hit-and-run. The diameter is an upper bound from the bounding box
    and Q's smallest eigenvalue.
    """

    Q: Float[Array, "n n"] | Float[Array, " n"]
    level: Float[Array, ""]
    bound: Float[Array, " n"]
    eigenvalues: Float[Array, " n"]
    eigenvectors: Float[Array, "n n"] | None  # None of a diagonal Q

    def __init__(self, Q: Numbers, level: Numbers, bound: Numbers):
        matrix, level, bound = floats("EllipsoidBox", Q=Q, level=level, bound=bound)
        square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]
        if not (square or matrix.ndim == 1) or matrix.shape[0] == 0:
            raise ValueError(
                f"EllipsoidBox: Q must be a square matrix, or the vector of its diagonal, but has shape {matrix.shape}."
            )
        self.level = scalar("EllipsoidBox", "level", level)
        require("EllipsoidBox", read(self.level) >= 0, "level must not be negative", EmptySetError)
        require("EllipsoidBox", read(bound) >= 0, "bound must not be negative in any entry", EmptySetError)
        if not square:
            self.Q, self.bound = vectors("EllipsoidBox", Q=matrix, bound=bound)
            require("EllipsoidBox", read(self.Q) >= 0, "Q must not be negative in any entry of its diagonal")
            self.eigenvalues, self.eigenvectors = stop_gradient(self.Q), None
            return
        self.Q = 0.5 * (matrix + matrix.T)
        self.bound, _ = vectors("EllipsoidBox", bound=bound, rows_of_Q=matrix[0])
        self.eigenvalues, self.eigenvectors, definite = _spectrum(stop_gradient(self.Q))
        require("EllipsoidBox", definite, "Q must be positive semi-definite")

    @property
    def dim(self) -> int:
        return self.bound.shape[-1]

    @property
    def scale(self) -> Float[Array, ""]:
        return jnp.max(self.bound)

    @property
    def diagonal(self) -> bool:
        """Whether Q was given as the vector of its diagonal."""
        return self.eigenvectors is None

    @compiled
    def residuals(self, a: Float[Array, " n"]) -> Float[Array, " m"]:
        return jnp.concatenate([jnp.atleast_1d(self.energy(a) - self.level), jnp.abs(a) - self.bound])

    def residual_names(self) -> tuple[str, ...]:
        return ("a'Q a - level", *entries("|a| - bound", self.dim))

    def energy(self, a: Float[Array, " n"]) -> Float[Array, ""]:
        """a'Q a."""
        return self._product(a, a)

    def _product(self, a: Float[Array, " n"], b: Float[Array, " n"]) -> Float[Array, ""]:
        """a'Q b, by the spectrum: Q b loses what is small beside Q's largest eigenvalue to rounding."""
        if self.eigenvectors is None:
            return jnp.sum(self.Q * (a * b))
        along = jnp.sum(self.eigenvalues * (self._turned(a) * self._turned(b)))
        return along + stop_gradient(a) @ (self.Q - stop_gradient(self.Q)) @ stop_gradient(b)

    def slopes(self) -> Float[Array, " m"]:
        """On the set |2 Q a| <= 2 sqrt(largest eigenvalue * level)."""
        steepest = 2.0 * jnp.sqrt(jnp.linalg.norm(self.Q) * self.level)
        return jnp.concatenate([jnp.atleast_1d(steepest), jnp.ones_like(self.bound)])

    def in_action_units(self, residuals: Float[Array, " m"]) -> Float[Array, " m"]:
        """Of the energy (sqrt(a'Q a) - sqrt(level)) / sqrt(||Q||), which a move of that length can change no more."""
        energy = residuals[0] + self.level
        root = jnp.where(energy > 0, jnp.sqrt(jnp.where(energy > 0, energy, 1.0)), 0.0)
        steep = jnp.sqrt(jnp.linalg.norm(self.Q)) * (root + jnp.sqrt(self.level))
        return residuals.at[0].divide(jnp.where(steep > 0, steep, 1.0))

    @compiled
    def project(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        if self.eigenvectors is None:
            side = jnp.where(z < 0, -1.0, 1.0).astype(self.dtype)  # never 0: the derivative at z = 0 stays right
            return side * nearest_in_budgets(self._budgets(side * z))
        return self._minimise(z, curvature=1.0)

    @compiled
    def maximise_linear(self, g: Float[Array, " n"]) -> Float[Array, " n"]:
        if self.eigenvectors is None:
            side = jnp.where(g < 0, -1.0, 1.0).astype(self.dtype)
            return side * highest_in_budgets(self._budgets(side * g))
        return self._minimise(g, curvature=0.0)

    @compiled
    def exit_distance(self, origin: Float[Array, " n"], direction: Float[Array, " n"]) -> Float[Array, ""]:
        box_ends = box_exit(origin, direction, -self.bound, self.bound)
        # In units of the way to the box's end, squares of a slow direction do not underflow.
        unit = stop_gradient(jnp.where((box_ends > 0) & jnp.isfinite(box_ends), box_ends, 1.0))
        pace = self.energy(unit * direction)
        lean = self._product(origin, unit * direction)
        room = jnp.maximum(self.level - self.energy(origin), 0.0)
        sooner = jnp.where(jnp.isfinite(box_ends), pace + 2.0 * lean > room, pace > 0)  # than the box
        pace, lean = jnp.where(sooner, pace, 1.0), jnp.where(sooner, lean, 0.0)
        time = quadratic_exit(pace, lean, room)
        return jnp.where(sooner, jnp.minimum(unit * time, box_ends), box_ends)

    @compiled
    def centre(self) -> Float[Array, " n"]:
        return jnp.zeros_like(self.bound)

    def direction(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return gaussian(key, self.half_widths())

    @drawn
    def sample(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        return hit_and_run(self, key)

    @compiled
    def diameter(self) -> Float[Array, ""]:
        smallest = jnp.min(self.eigenvalues)
        axis = jnp.sqrt(self.level / jnp.where(smallest > 0, smallest, 1.0))
        boxed = jnp.linalg.norm(self.half_widths())
        return 2.0 * jnp.where(smallest > 0, jnp.minimum(axis, boxed), boxed)

    def clipped(self, low: Bound, high: Bound) -> "EllipsoidBox | None":
        return narrower(self, low, high)

    @property
    def pieces(self) -> tuple[Projection, ...]:
        return (self.project,) if self.diagonal else (self._in_box, self._in_ellipsoid)

    def _in_box(self, x: Float[Array, " n"]) -> Float[Array, " n"]:
        return clamp(x, -self.bound, self.bound)

    def _in_ellipsoid(self, x: Float[Array, " n"]) -> Float[Array, " n"]:
        assert self.eigenvectors is not None
        return nearest_in_ellipsoid(x, self.Q, self.level, self.eigenvalues, self.eigenvectors)

    def _turned(self, a: Float[Array, " n"]) -> Float[Array, " n"]:
        """a in the coordinates of the eigenvectors."""
        return a if self.eigenvectors is None else a @ self.eigenvectors

    def _budgets(self, worth: Float[Array, " n"]) -> Budgets:
        heat, most = heat_in_units(self.Q, self.level, self.bound)
        return Budgets(worth, None, heat, most, jnp.zeros((), self.dtype))

    def _minimise(self, target: Float[Array, " n"], *, curvature: float) -> Float[Array, " n"]:
        size = jnp.maximum(jnp.max(self.half_widths()), jnp.finfo(self.dtype).tiny)
        a = minimise_over_intersection(self.pieces, target, stop_gradient(size), curvature=curvature)
        return with_tangent_of(a, self._scaled_in(a))

    def half_widths(self) -> Float[Array, " n"]:
        """Largest |a_i|, at most: the smaller of the bound and the ellipsoid's own sqrt(level (Q^-1)_ii)."""
        eigenvalues, vectors = self.eigenvalues, self.eigenvectors
        flat = eigenvalues <= 0
        if vectors is None:
            return jnp.where(
                flat, self.bound, jnp.minimum(self.bound, jnp.sqrt(self.level / jnp.where(flat, 1.0, eigenvalues)))
            )
        inverse = vectors**2 @ jnp.where(flat, 0.0, 1.0 / jnp.where(flat, 1.0, eigenvalues))
        open_ended = jnp.any(flat[None, :] & (jnp.abs(vectors) > jnp.finfo(self.dtype).eps), axis=1)
        return jnp.where(open_ended, self.bound, jnp.minimum(self.bound, jnp.sqrt(self.level * inverse)))

    def _scaled_in(self, a: Float[Array, " n"]) -> Float[Array, " n"]:
        """The point after some steps towards the ellipsoid; then on the ray to the origin, where it is still outside by
        more than rounding. The ray alone is long where the normal is steep, and leaves the nearest point."""
        a = self._stepped_in(a, to_the_least=False)
        a = jax.lax.fori_loop(0, PULLS, lambda _, x: self._stepped_in(x, to_the_least=True), a)
        energy = self.energy(a)
        rounding = 8 * jnp.finfo(self.dtype).eps * self.scale
        over = energy - self.level > rounding * (self.slopes()[0] + rounding * jnp.linalg.norm(self.Q))
        share = jnp.sqrt(jnp.where(over, self.level / jnp.where(over, energy, 1.0), 1.0))
        return a * jnp.where(over, share * (1.0 - 2.0 * jnp.finfo(self.dtype).eps), 1.0)

    def _stepped_in(self, a: Float[Array, " n"], *, to_the_least: bool) -> Float[Array, " n"]:
        """The point where a ray in the coordinates off their bounds comes to the ellipsoid, if `a` is outside: along
        the normal, or to the least energy, which does not zigzag in thin slabs. The smaller root of
        energy(a - s normal) = level, without cancellation."""
        assert self.eigenvectors is not None
        along = a @ self.eigenvectors
        normal = (self.eigenvalues * along) @ self.eigenvectors.T
        free = jnp.abs(a) < self.bound
        normal = jnp.where(free, normal, 0.0)
        if to_the_least:
            Q = jnp.where(free[:, None] & free[None, :], self.Q, 0.0)
            rounding = self.dim * jnp.finfo(self.dtype).eps * jnp.linalg.norm(self.Q)
            normal = jnp.linalg.solve(Q + jnp.diag(jnp.where(free, rounding, 1.0)), normal)
            normal = jnp.where(free & jnp.isfinite(normal), normal, 0.0)
        size = jnp.max(jnp.abs(normal))
        normal = normal / jnp.where(size > 0, size, 1.0)
        turned = normal @ self.eigenvectors
        pace, lean = jnp.sum(self.eigenvalues * turned**2), jnp.sum(self.eigenvalues * along * turned)
        excess = jnp.maximum(self.energy(a) - self.level, 0.0)
        root = lean**2 - pace * excess
        falls = (pace > 0) & (lean > 0)
        to_the_level = excess / jnp.where(falls, lean + jnp.sqrt(jnp.maximum(root, 0.0)), 1.0)
        step = jnp.where(root > 0, to_the_level, lean / jnp.where(falls, pace, 1.0))
        return self._in_box(a - jnp.where(falls & (excess > 0), step, 0.0) * normal)


@inlined_or_soon
def _spectrum(Q: Float[Array, "n n"]) -> tuple[Float[Array, " n"], Float[Array, "n n"], Bool[Array, " n"]]:
    """Eigenvalues, those that are rounding 0, eigenvectors, and which of the eigenvalues are not negative."""
    eigenvalues, vectors = exact_spectrum(Q)
    largest = jnp.max(jnp.abs(eigenvalues))
    rounding = 16 * (len(Q) * jnp.finfo(Q.dtype).eps) ** 2 * largest
    return jnp.where(eigenvalues > rounding, eigenvalues, 0.0), vectors, eigenvalues >= -1e-5 * largest


def heat_in_units(
    diagonal: Float[Array, " n"], level: Float[Array, ""], bound: Float[Array, " n"]
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """A diagonal Q for which the level is 1, with the bounds; level 0 is a bound of 0 where Q is not."""
    positive = level > 0
    heat = jnp.where(positive, diagonal / jnp.where(positive, level, 1.0), 0.0)
    return heat, jnp.where(positive | (diagonal <= 0), bound, 0.0)


def nearest_in_ellipsoid(
    z: Float[Array, " n"],
    Q: Float[Array, "n n"],
    level: Float[Array, ""],
    eigenvalues: Float[Array, " n"],
    vectors: Float[Array, "n n"],
) -> Float[Array, " n"]:
    """argmin ||a - z|| over {a : a'Q a <= level}, given Q's spectrum.

    a = (I + t Q)^-1 z with the t >= 0 that solves the secular equation phi(t) = sum_i q_i y_i^2 / (1 + t q_i)^2 = level
    (y the coordinates of z in Q's eigenvectors). Newton on 1/sqrt(phi), which is concave, converges from the left
    without overshooting; it starts at the largest t that one term alone demands. Derivatives in z, Q and level: those
    of the implicit function theorem for (a + t Q a - z, a'Q a - level) = 0.
    """
    return _nearest_and_price(z, Q, level, eigenvalues, vectors)[0]


@jax.custom_jvp
def _nearest_and_price(
    z: Float[Array, " n"],
    Q: Float[Array, "n n"],
    level: Float[Array, ""],
    eigenvalues: Float[Array, " n"],
    vectors: Float[Array, "n n"],
) -> tuple[Float[Array, " n"], Float[Array, ""], Float[Array, ""]]:
    """The nearest point, its t, and 1 where z is outside."""
    y = z @ vectors
    positive = level > 0
    goal = jnp.where(positive, level, 1.0)
    sloped = eigenvalues > 0
    curve = jnp.where(sloped, eigenvalues, 1.0)
    alone = jnp.where(sloped, (jnp.sqrt(eigenvalues / goal) * jnp.abs(y) - 1.0) / curve, 0.0)

    def newton(_: int, t: Float[Array, ""]) -> Float[Array, ""]:
        shrunk = y / (1.0 + t * eigenvalues)
        phi = jnp.sum(eigenvalues * shrunk**2)
        fall = 2.0 * jnp.sum(eigenvalues**2 * shrunk**2 / (1.0 + t * eigenvalues))
        step = 2.0 * phi / jnp.where(fall > 0, fall, 1.0) * (jnp.sqrt(phi / goal) - 1.0)
        return jnp.maximum(t + jnp.where(fall > 0, step, 0.0), 0.0)

    t = jax.lax.fori_loop(0, NEWTON_STEPS, newton, jnp.maximum(jnp.max(alone), 0.0))
    lost = jnp.where(positive, t * eigenvalues / (1.0 + t * eigenvalues), jnp.where(sloped, 1.0, 0.0))
    inside = jnp.sum(eigenvalues * y**2) <= level
    a = jnp.where(inside, z, z - (lost * y) @ vectors.T)
    return a, jnp.where(inside | ~positive, 0.0, t), jnp.where(inside, 0.0, 1.0).astype(t.dtype)


@_nearest_and_price.defjvp
@full_precision
def _(
    primals: tuple[Array, Array, Array, Array, Array], tangents: tuple[Array, Array, Array, Array, Array]
) -> tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]:
    """A point inside moves as z does; on the surface dz - t dQ a is shrunk by (I + t Q)^-1, with the price t changing
    so that the energy follows the level. Of the spectrum, which only says how Q is inverted, nothing is taken."""
    a, t, outside = _nearest_and_price(*primals)
    _, Q, level, eigenvalues, vectors = primals
    dz, dQ, dlevel, _, _ = tangents
    pressed = (outside > 0) & (level <= 0) & (eigenvalues > 0)  # on the null space of Q
    shrink = jnp.where(pressed, 0.0, 1.0 / (1.0 + t * eigenvalues))

    def unbend(x: Float[Array, " n"]) -> Float[Array, " n"]:
        return (shrink * (x @ vectors)) @ vectors.T

    normal = a @ Q
    bent = unbend(normal)
    steep = jnp.vdot(normal, bent)
    binding = (outside > 0) & (level > 0) & (steep > 0)
    moved = dz - t * (dQ @ a)
    gap = jnp.vdot(a, dQ @ a) - dlevel + 2.0 * jnp.vdot(bent, moved)
    change = jnp.where(binding, gap / jnp.where(binding, 2.0 * steep, 1.0), 0.0)
    return (a, t, outside), (unbend(moved) - change * bent, jnp.zeros_like(t), jnp.zeros_like(t))
