"""Copies that step as one against single environments, packet by packet, over ends of episodes and saved states."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray

from feasible.catalogue import registry
from feasible.constraints import ConstrainedVectorEnv
from feasible.errors import InvalidStepError
from feasible.run.drive.faults import NotFiniteError
from feasible.run.drive.plant import VectorPlant, plant_of
from tests.run.toys import UNREADABLE, Fault, SavedDrift, Unreadable, force

SEEDS = (3, 0, 7)


def toys(fault: Fault = "", at: int = 0) -> VectorPlant:
    """Three toys, the second with a fault."""
    makers = [SavedDrift, lambda: SavedDrift(fault, at), SavedDrift]
    return VectorPlant(ConstrainedVectorEnv(SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP), force))


def actions(env: VectorPlant, steps: int) -> NDArray:
    size = env.spec.action_size
    if env.spec.observation_size == 11 and size == 5:  # bikes
        return np.full((steps, len(SEEDS), 5), 30.0, np.float32)
    return np.random.default_rng(0).uniform(0.0, 0.1, (steps, len(SEEDS), size)).astype(np.float32)


@pytest.mark.parametrize(("task", "steps"), [("toy", 70), ("reacher", 120), ("bss-5", 130), ("nsfnet", 3)])
def test_every_copy_gives_the_packets_of_the_single_environment_with_its_seed(task: str, steps: int) -> None:
    copies = toys() if task == "toy" else VectorPlant(registry.make_vec(task, 3, threads=2))
    chosen = actions(copies, steps)
    seen = copies.reset(SEEDS)
    played = [copies.step(chosen[k], k + 1) for k in range(steps)]
    ends = 0
    for copy, seed in enumerate(SEEDS):
        env = SavedDrift() if task == "toy" else plant_of(registry.make(task)).env
        obs, _ = env.reset(seed=seed)
        np.testing.assert_array_equal(seen[copy], np.asarray(obs, np.float32))
        for k in range(steps):
            next_obs, reward, terminated, truncated, _ = env.step(chosen[k, copy])
            acted_on = next_obs
            if terminated or truncated:
                ends += 1
                acted_on, _ = env.reset()
            expected = np.concatenate([next_obs, acted_on, [reward, terminated, truncated]]).astype(np.float32)
            np.testing.assert_array_equal(played[k].packets[copy], expected)
            np.testing.assert_array_equal(played[k].seen[copy], np.asarray(acted_on, np.float32))
            assert played[k].rewards[copy] == reward
            assert played[k].ended[copy] == (terminated or truncated)
    assert ends >= (0 if task == "nsfnet" else 3)
    copies.env.close()


@pytest.mark.parametrize("task", ["toy", "reacher"])
def test_restored_copies_go_on_as_they_would_have(task: str) -> None:
    def make() -> VectorPlant:
        return toys() if task == "toy" else VectorPlant(registry.make_vec(task, 3))

    copies, restored = make(), make()
    chosen = actions(copies, 90)
    copies.reset(SEEDS)
    for k in range(30):
        copies.step(chosen[k], k + 1)
    assert copies.restorable
    restored.reset((1, 2, 3))
    restored.set_state({name: array.copy() for name, array in copies.get_state().items()})
    for k in range(30, 90):
        np.testing.assert_array_equal(copies.step(chosen[k], k + 1).packets, restored.step(chosen[k], k + 1).packets)


def test_the_spec_is_that_of_the_single_environment() -> None:
    for task in ("reacher", "bss-5", "nsfnet", "halfcheetah"):
        one, many = plant_of(registry.make(task)).spec, VectorPlant(registry.make_vec(task, 2)).spec
        assert (one.observation_size, one.action_size) == (many.observation_size, many.action_size)
        assert one.episode_length == many.episode_length == registry.TASKS[task].episode_length
        np.testing.assert_array_equal(one.low, many.low)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("observation", "Entry 1 of the observation of copy 1 is nan at step 4:"),
        ("reward", "The reward of copy 1 is nan"),
    ],
)
def test_a_number_that_is_not_finite_names_its_copy(fault: Fault, says: str) -> None:
    copies = toys(fault, at=4)
    chosen = actions(copies, 4)
    copies.reset(SEEDS)
    for k in range(3):
        assert not copies.step(chosen[k], k + 1).faults(k + 1)
    found = copies.step(chosen[3], 4).faults(4)
    assert list(found) == [1]
    with pytest.raises(NotFiniteError, match=says):
        raise found[1]


def test_a_first_observation_that_is_not_finite_names_its_copy() -> None:
    with pytest.raises(NotFiniteError, match="Entry 1 of the observation of copy 1 is inf at step 0:"):
        toys("first observation").reset(SEEDS)


def test_copies_that_start_again_a_step_late_are_refused() -> None:
    late = SyncVectorEnv([SavedDrift] * 2, autoreset_mode=AutoresetMode.NEXT_STEP)
    with pytest.raises(ValueError, match="SAME_STEP"):
        VectorPlant(ConstrainedVectorEnv(late, force))


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_step_that_cannot_be_read_names_its_copy(name: str) -> None:
    change, said = UNREADABLE[name]
    env = SyncVectorEnv([SavedDrift, lambda: Unreadable(change)], autoreset_mode=AutoresetMode.SAME_STEP)
    copies = VectorPlant(ConstrainedVectorEnv(env, force))
    copies.reset(SEEDS[:2])
    idle = np.zeros((2, 2), np.float32)
    copies.step(idle, 1)
    with pytest.raises(InvalidStepError, match=said) as stop:
        copies.step(idle, 2)
    assert " of copy 1 " in str(stop.value)
