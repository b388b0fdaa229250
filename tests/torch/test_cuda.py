"""Tensors on a GPU: the same answers as on the CPU, without a copy, in the order of PyTorch's streams.

Without the project's other packages: `pytest --noconftest tests/torch/test_cuda.py`.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The type checker also runs where PyTorch is not installed, and then takes a folder of tests for it.

import gc
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import feasible.torch as ft
from feasible import sets
from feasible.torch import crossing, memory

ROWS, CYCLES = 32, 400_000_000  # a kernel of a fifth of a second: what does not wait for it comes too early
DTYPES = {torch.float32: 1e-5, torch.float64: 1e-10}
"""What may differ from the CPU, whose divisions and hyperbolic tangents are other code."""


def power(obs: jax.Array) -> sets.ActionSet:
    return sets.WeightedL1Box(weights=obs, budget=3.0, bound=1.0)


def flat(obs: jax.Array) -> sets.ActionSet:
    return sets.Allocation(obs[0], jnp.zeros_like(obs), jnp.full_like(obs, 2.0))


def ball() -> sets.Ball:
    return sets.Ball(np.zeros(4, np.float32), np.float32(0.5))


def in_the_ball(z: torch.Tensor) -> torch.Tensor:
    return z * torch.clamp(0.5 / z.norm(dim=-1, keepdim=True), max=1.0)


def drawn(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def test_the_machine_has_what_is_tested() -> None:
    print(torch.cuda.get_device_name(), torch.__version__, jax.__version__, jax.devices())
    assert jax.default_backend() == "gpu"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["project", "maximise_linear", "alpha", "radial"])
def test_values_and_gradients_are_those_of_the_cpu(name: str, dtype: torch.dtype) -> None:
    constraint, n, d = (flat, 4, 3) if name == "radial" else (power, 6, 6)
    found = {}
    for device in ("cpu", "cuda"):
        obs = (1.0 + drawn(ROWS, n, dtype=dtype).abs()).to(device).requires_grad_()
        point = (2.0 * drawn(ROWS, d, dtype=dtype, seed=1)).to(device).requires_grad_()
        value = getattr(ft, name)(constraint, point, obs)
        (value**2).sum().backward(retain_graph=True)
        first = point.grad.clone()
        (value**2).sum().backward()
        torch.testing.assert_close(point.grad, 2 * first)
        with torch.no_grad():
            quiet = getattr(ft, name)(constraint, point, obs)
        assert not quiet.requires_grad
        torch.testing.assert_close(quiet, value.detach(), rtol=0, atol=0)
        found[device] = value.detach(), first, obs.grad
        assert all(part.device.type == device and part.dtype == dtype for part in found[device])
    for here, there in zip(found["cuda"], found["cpu"], strict=True):
        torch.testing.assert_close(here.cpu(), there, atol=DTYPES[dtype], rtol=DTYPES[dtype])


def test_the_layer_and_the_gaussian_of_a_network() -> None:
    obs, output = 1.0 + drawn(ROWS, 6).abs(), drawn(ROWS, 6, seed=1)
    for name in ("projection", "alpha", "radial"):
        layer = ft.Feasible(power, map=name).cuda()
        torch.testing.assert_close(layer(output.cuda(), obs.cuda()).cpu(), layer(output, obs), atol=1e-5, rtol=1e-5)
    policy, log_std = ft.MappedGaussian(power, -np.ones(6), np.ones(6)), torch.full((6,), -0.5)
    here = policy.sample(output.cuda(), log_std.cuda(), obs.cuda(), noise=drawn(ROWS, 6, seed=2).cuda())
    there = policy.sample(output, log_std, obs, noise=drawn(ROWS, 6, seed=2))
    for ours, expected in zip(here, there, strict=True):
        torch.testing.assert_close(ours.cpu(), expected, atol=1e-4, rtol=1e-4)
    network = torch.nn.Linear(6, 6).cuda()
    layer(network(obs.cuda()), obs.cuda()).square().sum().backward()
    assert network.weight.grad.abs().sum() > 0


def test_observations_of_integers_and_truths() -> None:
    def constraint(obs: dict) -> sets.ActionSet:
        radii = jnp.asarray([0.5, 2.0], obs["centre"].dtype)
        return sets.Ball(obs["centre"], jnp.where(obs["on"], radii[obs["gear"]], radii[0]))

    obs = {
        "centre": torch.ones(4, 2),
        "gear": torch.tensor([0, 1, 0, 1]),
        "on": torch.tensor([True, True, True, False]),
    }
    answer = ft.project(constraint, torch.zeros(4, 2).cuda(), {name: part.cuda() for name, part in obs.items()})
    near = 1.0 - 0.5 / np.sqrt(2.0)
    np.testing.assert_allclose(answer.cpu().numpy(), [[near, near], [0, 0], [near, near], [near, near]], atol=1e-6)


def test_tensors_cross_without_a_copy() -> None:
    for dtype in DTYPES:
        z = drawn(ROWS, 4, dtype=dtype).cuda()
        with memory.surroundings(z):
            array = memory.across(z)
            assert array.dtype == str(dtype).removeprefix("torch.")
            assert array.unsafe_buffer_pointer() == z.data_ptr()
            (tensor,) = memory.back((array + 1,))
            assert tensor.dtype == dtype
            torch.testing.assert_close(tensor, z + 1, rtol=0, atol=0)
    answer = jnp.arange(8.0, dtype=jnp.float32)
    assert memory.back((answer,))[0].data_ptr() == answer.unsafe_buffer_pointer()
    strided = drawn(4, ROWS).cuda().T
    torch.testing.assert_close(ft.project(ball(), strided), in_the_ball(strided), atol=1e-6, rtol=1e-6)


def test_answers_are_memory_of_their_own() -> None:
    """Also where a set of one's own answers with the point itself."""
    z, cotangent = drawn(ROWS, 4).cuda().requires_grad_(), drawn(ROWS, 4).cuda()
    (answer,) = crossing.crossed("same", lambda region, z: z, ball(), None, z)
    answer.backward(cotangent)
    assert len({z.data_ptr(), answer.data_ptr(), cotangent.data_ptr(), z.grad.data_ptr()}) == 4
    torch.testing.assert_close(z.grad, cotangent, rtol=0, atol=0)


def test_what_a_stream_has_yet_to_write_is_waited_for() -> None:
    """In both passes, on a stream that is not the default one, and by what reads the answer."""
    written, zeros = drawn(ROWS, 4).cuda(), torch.zeros(ROWS, 4, device="cuda")
    ft.project(ball(), zeros.clone().requires_grad_()).sum().backward()  # compiled before
    for stream in (torch.cuda.Stream(), torch.cuda.default_stream()):
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            z, weights = zeros.clone().requires_grad_(), torch.zeros_like(zeros)
            torch.cuda._sleep(CYCLES)
            z.data.copy_(written)
            answer = ft.project(ball(), z)
            kept = answer.detach().clone()
            torch.cuda._sleep(CYCLES)
            weights.copy_(written)
            (answer * weights).sum().backward()
            gradient = z.grad.clone()
        stream.synchronize()
        same = written.clone().requires_grad_()
        (in_the_ball(same) * written).sum().backward()
        torch.testing.assert_close(kept, in_the_ball(written), atol=1e-6, rtol=1e-6)
        torch.testing.assert_close(gradient, same.grad, atol=1e-5, rtol=1e-5)


def test_memory_that_pytorch_is_still_to_read_is_not_jax_own_again() -> None:
    """The host drops an answer whose reader waits on the GPU: JAX, on its own stream, must not write there."""
    rows = 1 << 20
    z = drawn(rows, 4).cuda()
    ft.project(ball(), z)  # compiled before
    answer = ft.project(ball(), z)
    expected, place = in_the_ball(z), answer.data_ptr()
    ones = jnp.ones((rows, 4), jnp.float32)
    jax.block_until_ready(ones * 1)  # compiled before
    torch.cuda.synchronize()
    torch.cuda._sleep(CYCLES)
    view = answer[:, :2]
    del answer
    kept = view.clone()
    del view
    gc.collect()
    written = [jax.block_until_ready(ones * scale) for scale in range(2, 8)]  # done long before the kernel ends
    assert place not in [array.unsafe_buffer_pointer() for array in written]
    torch.cuda.synchronize()
    torch.testing.assert_close(kept, expected[:, :2], atol=1e-6, rtol=1e-6)
    del written
    ft.project(ball(), z)
    assert len(memory._read) <= 1  # JAX has all of them back but the last


def test_tensors_on_the_cpu_are_computed_there() -> None:
    z = drawn(ROWS, 4).requires_grad_()
    answer = ft.project(ball(), z)
    answer.sum().backward()
    assert answer.device.type == z.grad.device.type == "cpu"
    torch.testing.assert_close(answer.detach(), in_the_ball(z.detach()), atol=1e-6, rtol=1e-6)
    with pytest.raises(ValueError, match="obs is on cpu and the actions on cuda:0; move one to the other"):
        ft.project(power, torch.ones(3, 6).cuda(), torch.ones(3, 6))


@pytest.mark.parametrize(
    ("platforms", "move", "sentence"),
    [
        ("cpu", ".cuda()", "the tensor is on cuda:0, but JAX has no such device here"),
        ("cuda", "", "the tensor is on the CPU, which JAX was told to leave out"),
    ],
)
def test_where_jax_has_no_such_device_a_sentence_says_so(platforms: str, move: str, sentence: str) -> None:
    program = f"""
import torch, feasible.torch as ft
from feasible import sets
import numpy as np
try:
    ft.project(sets.Ball(np.zeros(2, np.float32), np.float32(0.5)), torch.ones(3, 2){move})
except RuntimeError as error:
    print(error)
"""
    surroundings = {**os.environ, "JAX_PLATFORMS": platforms, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=surroundings, timeout=120)
    assert sentence in run.stdout, run.stderr


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # of torch.compile, which looks at all it is given
def test_under_torch_compile_it_is_an_opaque_call() -> None:
    """With a backend that needs no compiler on the machine."""
    written, region = drawn(ROWS, 4).cuda(), ball()

    def loss(z: torch.Tensor) -> torch.Tensor:
        return (ft.project(region, 2.0 * z) ** 2).sum()

    found = []
    for function in (loss, torch.compile(loss, backend="aot_eager")):
        point = written.clone().requires_grad_()
        function(point).backward()
        found.append(point.grad)
    torch.testing.assert_close(*found)
