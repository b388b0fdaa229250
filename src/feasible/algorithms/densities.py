"""Densities of mapped Gaussians: what SAC needs of an action beside the action.

y ~ N(mean, diag(std^2)) are coordinates of the set's hull (`feasible.algorithms.maps`), d of them; g is the gauge at y.

`radial` is one to one. Its derivative stretches the ray's direction by sech(g)^2 and all others by tanh(g) / g, so

    log p(a) = log N(y) - (d - 1) log(tanh(g) / g) - 2 log sech(g).

`alpha` is the identity inside, with the Gaussian's density, and sends what is outside to the boundary: there it has a
density with respect to the surface's measure (for d = 1, a mass). All points of the ray beyond b = y / g become b:

    rho(b) = 1 / ||grad g(b)|| * int_1^inf t^(d - 1) N(t b) dt,

since 1 / ||grad g(b)|| is the distance from the centre to the tangent plane at b. In units of the deviations let b be e
long, and the mean m along the ray and the rest across it. With x = t e - m the integrand is

    N across the ray * exp(k(x)) / e,      k(x) = (d - 1) log t - x^2 / 2,

a concave function for x > e - m. A sample y = g b gives what is needed by its noise n = (y - mean) / std: n across the
ray is the rest, and m = g e - c for the noise c along it. So nothing large is subtracted from something large, however
small the deviations are and however far outside the mean is. The integral is taken by Gauss and Legendre's rule with 48
points around the mode, as far as k falls by 20, in log space. Where the set's boundary is its lower limit, the limit
carries its derivative.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from feasible.algorithms.gaussian import gaussian_log_density
from feasible.algorithms.maps import Chart, gauge, tanh_ratio
from feasible.sets.base import ActionSet

Coordinates = Float[Array, " d"]
Scalar = Float[Array, ""]
FALL = 20.0  # e^-20 of the largest value: below the rounding of float32
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(48)


def radial_log_det(g: Scalar, dim: int) -> Scalar:
    """log |det| of v -> v tanh(g(v)) / g(v) in `dim` dimensions."""
    return (dim - 1) * jnp.log(tanh_ratio(g)) + 2.0 * log_sech(g)


def log_sech(g: Scalar) -> Scalar:
    return jnp.log(2.0) - g - jnp.log1p(jnp.exp(-2.0 * g))


def alpha_log_density(
    region: ActionSet,
    hull: Chart,
    point: Coordinates,
    noise: Coordinates,
    std: Coordinates,
    g: Scalar | float,
    on_edge: Bool[Array, ""],
) -> Scalar:
    """Inside the Gaussian's, on the edge log rho; by the noise (g point - mean) / std, g = 1 inside.

    By the noise of a sample that `alpha` brought to the point, it is exact for all deviations. By that of a point on
    the edge, g = 1, small deviations magnify the rounding of the point.
    """
    # Inside, any other point keeps what is not taken finite.
    edge = jnp.where(on_edge, point, jnp.ones_like(point))
    on_the_edge = boundary_log_density(region, hull, edge, noise, std, jnp.where(on_edge, g, 1.0))
    return jnp.where(on_edge, on_the_edge, gaussian_log_density(noise, jnp.log(std)))


def boundary_log_density(
    region: ActionSet, hull: Chart, b: Coordinates, noise: Coordinates, std: Coordinates, g: Scalar | float
) -> Scalar:
    """log rho(b) of `alpha` for a point b of the boundary, by the noise (g b - mean) / std of a point of its ray."""
    slope = jax.grad(lambda y: gauge(region, hull.centre, hull.lifted(y)))(b)
    beyond = ray_log_integral(b / std, noise, g)
    return gaussian_log_density(jnp.zeros_like(noise), jnp.log(std)) + beyond - 0.5 * jnp.log(jnp.vdot(slope, slope))


def ray_log_integral(b: Coordinates, noise: Coordinates, g: Scalar | float) -> Scalar:
    """log int_1^inf t^(d - 1) exp(-||t b - mean||^2 / 2) dt with the mean g b - noise."""
    more, e = b.shape[0] - 1.0, jnp.linalg.norm(b)
    way = b / e
    c = jnp.vdot(way, noise)
    across = noise - c * way
    least = e * (1.0 - g) + c
    start, length = _limits(more, g * e - c, jax.lax.stop_gradient(least))
    half = 0.5 * length
    x = jnp.where(start > least, start, least) + half * jnp.asarray(1.0 + POINTS, b.dtype)
    height = more * jnp.log(g + (x - c) / e) - 0.5 * jnp.square(x)
    along = jax.nn.logsumexp(height, b=half * jnp.asarray(WEIGHTS, b.dtype))
    return along - jnp.log(e) - 0.5 * jnp.vdot(across, across)


def _limits(more: float, m: Scalar, least: Scalar) -> tuple[Scalar, Scalar]:
    """Where in [least, inf) k begins to be within `FALL` of its largest value, and for how long; without a derivative.

    k' = more / (m + x) - x has one root with m + x > 0, by the form of the quadratic formula that does not cancel. On
    both sides of the mode k falls at least as x^2 / 2, to the right also as its slope there.
    """
    m = jax.lax.stop_gradient(m)
    root = jnp.sqrt(m * m + 4.0 * more)
    peak = jnp.where(m > 0, 2.0 * more / jnp.where(m > 0, m + root, 1.0), 0.5 * (root - m))
    mode = jnp.maximum(peak, least)
    fall = mode - more / (m + mode)
    width = (2.0 * FALL) ** 0.5
    reach = jnp.where(fall * width > FALL, FALL / jnp.where(fall > 0, fall, 1.0), width)
    start = jnp.maximum(mode - width, least)
    return start, mode + reach - start
