"""Frank-Wolfe without any learning: sets are useful wherever a smooth function meets a constraint.

    python examples/frank_wolfe.py

A sparse regression, min 1/2 ||X a - y||^2 over {sum |a_i| <= 2, |a_i| <= 1}. Every iterate is a mean of points of the
set and hence feasible; no projection is made. The Frank-Wolfe gap <grad, a - c> is a certificate: the value is above
the optimum by no more than it.
"""

import jax
import jax.numpy as jnp
import numpy as np

import feasible as fs

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 40)) / np.sqrt(200)
truth = np.zeros(40)
truth[[3, 11, 29]] = 0.9, -0.6, 0.4
y = X @ truth + 0.02 * rng.normal(size=200)

region = fs.sets.WeightedL1Box(weights=np.ones(40), budget=2.0, bound=1.0)


def value(a: jax.Array) -> jax.Array:
    return 0.5 * jnp.sum((X @ a - y) ** 2)


@jax.jit
def step(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """One step with the exact step length, which a quadratic has in closed form; and the gap before it."""
    downhill = -jax.grad(value)(a)
    corner = region.maximise_linear(downhill)  # the oracle: a fractional knapsack, no solver
    gap = region.frank_wolfe_gap(a, downhill)
    across = X @ (corner - a)
    share = jnp.clip(gap / jnp.maximum(across @ across, 1e-12), 0.0, 1.0)
    return a + share * (corner - a), gap


if __name__ == "__main__":
    a = region.centre()
    print("  step      value        gap")
    for number in range(201):
        a_next, gap = step(a)
        if number in (0, 1, 2, 5, 10, 20, 50, 100, 200):
            print(f"{number:6d} {float(value(a)):10.5f} {float(gap):10.5f}")
        a = a_next
    print("found:", {i: round(float(a[i]), 2) for i in np.flatnonzero(np.abs(a) > 0.1)}, "truth:", truth[[3, 11, 29]])
    print("feasible:", bool(region.contains(a)), f"sum |a| = {float(jnp.sum(jnp.abs(a))):.3f}")
