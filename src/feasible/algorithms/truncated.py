"""The Gaussian restricted to a set: density and samples by rays from the mean.

y ~ N(mean, diag(std^2)) given that y is inside, in d coordinates of the set's hull, the mean inside. In units of the
deviations a direction w is uniform on the sphere, the radius along it is chi-distributed with d degrees of freedom, and
the ray leaves the set at e(w), by `exit_distance`. So

    Z = P(inside) = mean over w of F(e(w)),      F(r) = P(d/2, r^2/2), the distribution of chi,
    p(y) = N(y) / Z inside, 0 outside.

K directions, in pairs w and -w, stand for all: log Z is the logarithm of their mean, whose bias is about
-Var(F) / (2 K Z^2), and a sample picks direction k in proportion to F(e_k), and a radius by inverting F(r) = u F(e_k).
`python -m benchmarks.truncated` tabulates both errors.

Derivatives. Within a direction the radius follows mean and std exactly, by the derivative of F. The choice of the
direction is discrete: its probabilities F(e_k) / sum F(e) follow mean and std, and a loss f of the sample gets the
term (f - baseline) d log(F(e_k) / sum F(e)), the score of the choice (`Drawn.log_choice`), so that its gradient is
unbiased given the directions.
"""

import math
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from feasible.algorithms.base import Spec
from feasible.algorithms.gaussian import Normal, gaussian_log_density
from feasible.algorithms.maps import Hull, radial
from feasible.sets.base import ActionSet
from feasible.sets.integer_allocation import IntegerAllocation

Coordinates = Float[Array, " d"]
Scalar = Float[Array, ""]
HALVINGS, STEPS = 12, 3  # of the radius: bisection, then Newton's steps
FARTHEST = 9.0  # radius, above the square root of the dimension, that float64 cannot tell from infinity
WITHIN = 0.99  # how far out a mean may be: on the boundary itself, rays along it have no length and no derivative


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def log_chi(r: Float[Array, "*k"], dim: int) -> Float[Array, "*k"]:
    """log P(dim/2, r^2/2): how likely a standard Gaussian in `dim` dimensions is shorter than r.

    Below its middle by the series of positive terms, above by the finite sum of the other tail: exact to rounding, also
    where the probability underflows.
    """
    a, x = 0.5 * dim, 0.5 * jnp.square(r)
    low = x < a + 1.0
    small = jnp.where(low, jnp.maximum(x, jnp.finfo(x.dtype).tiny), 1.0)
    series = jnp.ones_like(x)
    for k in range(8 + int(6 * math.sqrt(a + 1.0)), 0, -1):
        series = 1.0 + series * small / (a + k)
    below = a * jnp.log(small) - small - math.lgamma(a + 1.0) + jnp.log(series)
    large = jnp.where(low, a + 1.0, jnp.minimum(x, 4.0 * a + 100.0))  # beyond, the tail is nothing in any precision
    return jnp.where(low, below, jnp.log1p(-_tail(large, dim)))


@log_chi.defjvp
def _log_chi_slope(dim: int, at: tuple[Array], along: tuple[Array]) -> tuple[Array, Array]:
    """The density of chi over its distribution, which for small r is dim / r."""
    (r,), (dr,) = at, along
    value = log_chi(r, dim)
    log_r = jnp.log(jnp.maximum(r, jnp.finfo(r.dtype).tiny ** 0.5))
    log_density = (dim - 1) * log_r - 0.5 * jnp.square(r) - (0.5 * dim - 1) * math.log(2) - math.lgamma(0.5 * dim)
    return value, jnp.exp(log_density - value) * dr


def _tail(x: Array, dim: int) -> Array:
    """1 - P(dim/2, x), by the finite sum that a whole or half a has."""
    odd = dim % 2
    total = jnp.zeros_like(x)
    for k in range(dim // 2 - 1, -1, -1):  # sum of x^k / Gamma(k + 1), or for odd dim x^k / Gamma(k + 3/2), nested
        total = 1.0 / math.gamma(k + 1.0 + 0.5 * odd) + total * x
    total = total * jnp.exp(-x)
    return jax.scipy.special.erfc(jnp.sqrt(x)) + jnp.sqrt(x) * total if odd else total


class Truncated(eqx.Module):
    """The restricted Gaussian of one state, with the K directions that stand for all."""

    mean: Coordinates
    std: Coordinates
    directions: Float[Array, "k d"]
    exits: Float[Array, " k"]

    @classmethod
    def of(
        cls, region: ActionSet, hull: Hull, mean: Coordinates, std: Coordinates, directions: Float[Array, "k d"]
    ) -> "Truncated":
        origin = hull.action(mean)
        exits = jax.vmap(lambda w: region.exit_distance(origin, hull.lifted(std * w)))(directions)
        return cls(mean, std, directions, exits)

    @property
    def log_shares(self) -> Float[Array, " k"]:
        """log F(e_k)."""
        return log_chi(self.exits, self.mean.shape[0])

    @property
    def log_inside(self) -> Scalar:
        """log Z."""
        return jax.nn.logsumexp(self.log_shares) - math.log(len(self.directions))

    @property
    def entropy(self) -> Scalar:
        """log Z + E[r^2] / 2 + the logarithm of what the Gaussian divides by, with the mean square of a restricted chi.

        The integral of r^2 / 2 up to e is (d/2) P(d/2 + 1, e^2/2): the same function in two dimensions more.
        """
        d = self.mean.shape[0]
        more = jax.nn.logsumexp(log_chi(self.exits, d + 2)) - jax.nn.logsumexp(self.log_shares)
        return self.log_inside + 0.5 * d * (jnp.exp(more) + math.log(2 * math.pi)) + jnp.sum(jnp.log(self.std))

    def log_density(self, y: Coordinates) -> Scalar:
        """Of a point inside."""
        return gaussian_log_density((y - self.mean) / self.std, jnp.log(self.std)) - self.log_inside

    def sample(self, key: PRNGKeyArray) -> tuple[Coordinates, Scalar]:
        """A point, differentiable along its ray, and the logarithm of the probability of its direction."""
        choice_key, radius_key = jax.random.split(key)
        shares = self.log_shares
        chosen = jax.random.categorical(choice_key, jax.lax.stop_gradient(shares))
        log_level = jnp.log(jax.random.uniform(radius_key, (), self.mean.dtype, minval=jnp.finfo(self.mean.dtype).tiny))
        radius = inverse_chi(shares[chosen] + log_level, self.exits[chosen], self.mean.shape[0])
        return self.mean + radius * self.std * self.directions[chosen], jax.nn.log_softmax(shares)[chosen]


class Frame(eqx.Module):
    """A feasible set with its hull, in which a Gaussian in units of the box is placed."""

    region: ActionSet
    hull: Hull
    start: Coordinates
    unit: Coordinates

    @classmethod
    def of(cls, spec: Spec, region: ActionSet) -> "Frame":
        hull = Hull.of(region)
        start = hull.placed(spec, jnp.zeros(hull.dim, spec.low.dtype))
        return cls(region, hull, start, hull.widths(0.5 * (spec.high - spec.low)))

    def radial(self, output: Coordinates) -> Coordinates:
        return radial(self.region, self.hull, self.start + self.unit * output)

    def mean(self, output: Coordinates) -> Coordinates:
        """The mean of a restricted Gaussian: brought inside by `radial`, and off the boundary."""
        return WITHIN * self.radial(output)

    def truncated(self, normal: Normal, directions: Float[Array, "k d"]) -> Truncated:
        """The Gaussian restricted to the set."""
        std = self.unit * jnp.exp(normal.log_std)
        return Truncated.of(self.region, self.hull, self.mean(normal.mean), std, directions)


def inverse_chi(log_level: Scalar, highest: Scalar, dim: int) -> Scalar:
    """The r in [0, highest] with log F(r) = log_level; its derivative is that of the equation."""

    def halved(_: int, bounds: tuple[Scalar, Scalar]) -> tuple[Scalar, Scalar]:
        low, high = bounds
        middle = 0.5 * (low + high)
        beyond = log_chi(middle, dim) > goal
        return jnp.where(beyond, low, middle), jnp.where(beyond, middle, high)

    def refined(_: int, r: Scalar) -> Scalar:
        return jnp.clip(r - (log_chi(r, dim) - goal) / jax.grad(log_chi)(r, dim), low, high)

    goal, top = jax.lax.stop_gradient(log_level), jax.lax.stop_gradient(highest)
    top = jnp.minimum(top, dim**0.5 + FARTHEST)  # beyond it nothing is drawn, and halvings would be used up on the way
    low, high = jax.lax.fori_loop(0, HALVINGS, halved, (jnp.zeros_like(top), top))
    r = jax.lax.fori_loop(0, STEPS, refined, 0.5 * (low + high))
    slope = jax.grad(log_chi)(r, dim)
    # One step more, in which the level carries its derivative: dr = d log_level / (log F)'(r).
    return jnp.minimum(r + (log_level - jax.lax.stop_gradient(log_level)) / jax.lax.stop_gradient(slope), highest)


def spread_directions(key: PRNGKeyArray, count: int, dim: int, dtype: jnp.dtype) -> Float[Array, "k d"]:
    """Random unit vectors, in pairs of opposite ones; on a line, the two that there are."""
    normal = jax.random.normal(key, (count // 2, dim), dtype)
    half = normal / jnp.linalg.norm(normal, axis=1, keepdims=True)
    return jnp.concatenate([half, -half])


def scored(losses: Float[Array, " b"], log_choice: Float[Array, " b"]) -> Float[Array, " b"]:
    """Zeros with the gradient that the choices add to a loss: (loss - mean of the others' losses) d log_choice."""
    fixed, count = jax.lax.stop_gradient(losses), losses.shape[0]
    others = (jnp.sum(fixed) - fixed) / max(count - 1, 1)
    return (fixed - others) * (log_choice - jax.lax.stop_gradient(log_choice))


def check_truncated(owner: str, spec: Spec, directions: int) -> None:
    """Refuse sets without a density, and directions that are not pairs."""
    if isinstance(spec.region, IntegerAllocation):
        raise ValueError(
            f"{owner}: map='truncated' needs a set with a density, and the actions of this task are whole numbers; use "
            "map='radial', or a projection, which take every set."
        )
    if directions % 2:
        raise ValueError(f"{owner}: directions must be even, since they come in pairs, not {directions}.")
