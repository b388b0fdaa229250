"""How far the restricted Gaussian of K directions is from the true one, by dimension.

    python -m benchmarks.truncated

A Gaussian of deviation 0.5 in a cube of side 2, its mean half-way to a face in every entry, restricted to the cube:
there everything is known, entry by entry. For every K: the error of log Z (its bias, and the deviation of one
estimate), and the error of the samples' mean, of what `Truncated.sample` draws, in units of the deviation.
"""

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import stats

from feasible.algorithms.maps import Hull
from feasible.algorithms.truncated import Truncated, spread_directions
from feasible.sets import Box

DIMENSIONS, COUNTS, DRAWS = (2, 8, 17), (8, 16, 32, 64, 128, 256), 20_000
MEAN, STD = 0.5, 0.5


def measured(dim: int, count: int) -> tuple[float, float, float]:
    """Bias and deviation of log Z, and the error of the samples' mean."""
    region = Box(-np.ones(dim, np.float32), np.ones(dim, np.float32))
    hull, mean, std = Hull.of(region), jnp.full(dim, MEAN, jnp.float32), jnp.full(dim, STD, jnp.float32)

    def one(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        ways_key, key = jax.random.split(key)
        ways = spread_directions(ways_key, count, dim, mean.dtype)
        policy = Truncated.of(region, hull, mean, std, ways)
        return policy.log_inside, policy.sample(key)[0]

    keys = jax.random.split(jax.random.key(count), DRAWS).reshape(20, -1)
    log_inside, points = jax.jit(lambda keys: jax.lax.map(jax.vmap(one), keys))(keys)
    truth = stats.truncnorm((-1 - MEAN) / STD, (1 - MEAN) / STD, MEAN, STD)
    share = stats.norm.cdf(1, MEAN, STD) - stats.norm.cdf(-1, MEAN, STD)
    found = np.asarray(log_inside, np.float64).ravel() - dim * np.log(share)
    return float(found.mean()), float(found.std()), float(np.asarray(points).mean() - truth.mean()) / STD


def main() -> None:
    table = Table(title=f"Restricted Gaussians by K directions, {DRAWS:,} draws each, float32")
    for column in ("d", "K", "bias of log Z", "deviation of log Z", "samples' mean, in deviations"):
        table.add_column(column, justify="right")
    for dim in DIMENSIONS:
        for count in COUNTS:
            bias, spread, shift = measured(dim, count)
            table.add_row(str(dim), str(count), f"{bias:+.4f}", f"{spread:.4f}", f"{shift:+.4f}")
    Console().print(table)


if __name__ == "__main__":
    main()
