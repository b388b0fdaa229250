"""What a flow costs beside a projection: HalfCheetah's set, one CPU thread, times taken in turns.

    python -m benchmarks.flow [--batch 256] [--rounds 50]

The flow is a RealNVP of FlowPG's size (arXiv 2402.05149): 6 affine couplings, hidden layers of 256 units, n = 6, all
conditioned on the 17 entries of the state. Two hidden layers per coupling are our assumption. Its weights are random,
which costs the same. It is trained by maximum likelihood on 500,000 feasible samples over 100 epochs; that cost is
reckoned from the time of one step of Adam, and leaves out how the samples are drawn. Both compute in float32; programs
are compiled before they are timed. The gradient is that of the sum of squares of the answers.
"""

import argparse
import os
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from benchmarks.projection import processor, use_one_thread

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Array, Float, PRNGKeyArray

    from benchmarks.peers import Run

COUPLINGS, HIDDEN, N, STATE = 6, 256, 6, 17
SAMPLES, EPOCHS = 500_000, 100
Weights = list[list[tuple["Array", "Array"]]]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flow", description="A flow beside a projection.")
    parser.add_argument("--batch", type=int, default=256, help="points per call")
    parser.add_argument("--rounds", type=int, default=50, help="turns of each")
    options = parser.parse_args(arguments)
    use_one_thread()

    # Imported here: the number of threads must be settled first.
    import numpy as np

    from benchmarks.measurement import Prepared, in_turns
    from benchmarks.peers.ours import Feasible
    from benchmarks.problems import halfcheetah, proposals

    batch, problem, ours = options.batch, halfcheetah(), Feasible("float32")
    points = proposals(problem, batch)
    state = np.random.default_rng(4).normal(size=(batch, STATE))
    runs = {
        "projection": ours.forward(problem, points),
        "projection with gradient": ours.backward(problem, points),
        **_flow_runs(points.z / problem.reach, state),
    }
    for run in runs.values():
        run()
    medians = in_turns({name: Prepared(run, batch, 5) for name, run in runs.items()}, options.rounds)
    for name, seconds in medians.items():
        print(f"{name:26} {1e6 * seconds / batch:8.3f} microseconds per point")
    for kind in ("", " with gradient"):
        print(f"a flow{kind}: {medians[f'flow{kind}'] / medians[f'projection{kind}']:.0f} times a projection{kind}")
    hours = SAMPLES * EPOCHS / batch * medians["flow, step of training"] / 3600
    print(f"{SAMPLES:,} samples x {EPOCHS} epochs in batches of {batch}: {hours:.1f} hours of training")
    print(f"batch {batch}, float32, {processor()}; load of the machine {os.getloadavg()[0]:.1f}, this program 1 of it")


def _flow_runs(points: "Float[np.ndarray, 'b n']", states: "Float[np.ndarray, 'b o']") -> "dict[str, Run]":
    """What is timed of the flow: acting, its gradient, and a step of its training."""
    import jax
    import jax.numpy as jnp
    import optax

    optimiser = optax.adam(1e-5)
    z, state = jnp.asarray(points, jnp.float32), jnp.asarray(states, jnp.float32)
    weights = start(jax.random.key(0))
    moments = optimiser.init(weights)
    act = jax.jit(lambda z: jax.vmap(flow, (None, 0, 0))(weights, z, state)[0])
    slope = jax.jit(jax.grad(lambda z: jnp.sum(jax.vmap(flow, (None, 0, 0))(weights, z, state)[0] ** 2)))

    @jax.jit
    def learn(weights: Weights, moments: optax.OptState) -> tuple[Weights, optax.OptState]:
        def loss(weights: Weights) -> "Array":
            # A coupling and its inverse cost the same: `z` stands for a sample, the flow for its way back.
            y, log_det = jax.vmap(flow, (None, 0, 0))(weights, z, state)
            return jnp.mean(0.5 * jnp.sum(y**2, axis=1) - log_det)

        updates, moments = optimiser.update(jax.grad(loss)(weights), moments)
        return optax.apply_updates(weights, updates), moments  # pyright: ignore[reportReturnType]

    return {
        "flow": lambda: act(z).block_until_ready(),
        "flow with gradient": lambda: slope(z).block_until_ready(),
        "flow, step of training": lambda: jax.block_until_ready(learn(weights, moments)[0][0][0]),
    }


def start(key: "PRNGKeyArray") -> Weights:
    """Random weights: for each coupling three layers, from half of the numbers and the state to scale and shift."""
    import jax

    sizes = (N // 2 + STATE, HIDDEN, HIDDEN, N)
    keys = jax.random.split(key, (COUPLINGS, len(sizes) - 1))
    pairs = list(pairwise(sizes))
    return [
        [
            (jax.random.normal(k, pair) / pair[0] ** 0.5, jax.numpy.zeros(pair[1]))
            for k, pair in zip(row, pairs, strict=True)
        ]
        for row in keys
    ]


def flow(
    weights: Weights, z: "Float[Array, ' n']", state: "Float[Array, ' o']"
) -> "tuple[Float[Array, ' n'], Float[Array, '']]":
    """A RealNVP: each coupling scales and shifts one half by a network of the other and of the state."""
    import jax.numpy as jnp

    kept, moved, log_det = z[: N // 2], z[N // 2 :], jnp.zeros(())
    for layers in weights:
        x = jnp.concatenate([kept, state])
        for weight, bias in layers[:-1]:
            x = jnp.maximum(x @ weight + bias, 0.0)
        weight, bias = layers[-1]
        scale, shift = jnp.split(x @ weight + bias, 2)
        scale = jnp.tanh(scale)
        kept, moved, log_det = moved * jnp.exp(scale) + shift, kept, log_det + jnp.sum(scale)
    return jnp.concatenate([kept, moved]), log_det


if __name__ == "__main__":
    main()
