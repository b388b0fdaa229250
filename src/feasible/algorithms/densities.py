"""Densities of mapped Gaussians: what SAC needs of an action beside the action.

y ~ N(mean, diag(std^2)) are coordinates of the set's hull (`feasible.algorithms.maps`), d of them; g is the gauge at y.

`radial` is one to one. Its derivative stretches the ray's direction by sech(g)^2 and all others by tanh(g) / g, so

    log p(a) = log N(y) - (d - 1) log(tanh(g) / g) - 2 log sech(g).

`alpha` is the identity inside, with the Gaussian's density, and sends what is outside to the boundary: there it has a
density with respect to the surface's measure (for d = 1, a mass). All points of the ray beyond b = y / g become b:

    rho(b) = 1 / ||grad g(b)|| * int_1^inf t^(d - 1) N(t b) dt,

since 1 / ||grad g(b)|| is the distance from the centre to the tangent plane at b. With b and the mean in units of the
deviations, the integrand is N(b) exp(k(x)), x = t - 1,

    k(x) = (d - 1) log(1 + x) - (|b|^2 / 2) x^2 - <b, b - mean> x,

a concave function. The integral is taken by Gauss and Legendre's rule with 48 points around its mode, as far as k falls
by 20, in log space: nothing cancels and nothing overflows. The limits carry no derivative, the integrand does.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

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


def boundary_log_density(region: ActionSet, hull: Chart, b: Coordinates, mean: Coordinates, std: Coordinates) -> Scalar:
    """log rho(b) of `alpha` for a point b of the boundary."""
    slope = jax.grad(lambda y: gauge(region, hull.centre, hull.lifted(y)))(b)
    beyond = ray_log_integral(b / std, mean / std)
    return gaussian_log_density((b - mean) / std, jnp.log(std)) + beyond - 0.5 * jnp.log(jnp.vdot(slope, slope))


def ray_log_integral(b: Coordinates, mean: Coordinates) -> Scalar:
    """log int_1^inf t^(d - 1) N(t b) / N(b) dt, for N(mean, 1)."""
    more, square, linear = b.shape[0] - 1.0, 0.5 * jnp.vdot(b, b), jnp.vdot(b, b - mean)

    def height(x: Array) -> Array:
        return more * jnp.log1p(x) - square * x * x - linear * x

    start, end = (jax.lax.stop_gradient(limit) for limit in _limits(more, square, linear))
    half = 0.5 * (end - start)
    x = start + half * jnp.asarray(1.0 + POINTS, b.dtype)
    return jax.nn.logsumexp(height(x), b=half * jnp.asarray(WEIGHTS, b.dtype))


def _limits(more: float, square: Scalar, linear: Scalar) -> tuple[Scalar, Scalar]:
    """Where in [0, inf) k is within `FALL` of its largest value, or a little further.

    k' = more / t - 2 square (t - 1) - linear, t = 1 + x, has one positive root, by the form of the quadratic formula
    that does not cancel. To the right of the mode k falls at least as square x^2 and as its slope there, to the left as
    square x^2.
    """
    middle = 0.5 * linear - square
    root = jnp.sqrt(middle * middle + 2.0 * square * more)
    t = jnp.where(middle > 0, more / jnp.where(middle > 0, middle + root, 1.0), (root - middle) / (2.0 * square))
    mode = jnp.maximum(t - 1.0, 0.0)
    fall = 2.0 * square * mode + linear - more / (1.0 + mode)
    width = jnp.sqrt(FALL / square)
    reach = jnp.where(fall * width > FALL, FALL / jnp.where(fall > 0, fall, 1.0), width)
    return jnp.maximum(mode - width, 0.0), mode + reach
