"""The hyper-parameters of ARAM and PASPO, for the preset `field` of the tasks that their suites have."""

from feasible.algorithms.aram import ARAM
from feasible.algorithms.sequential import SequentialPPO


def aram(*, steps: int, reward_scale: float = 1.0, reward_shift: float = 0.0, warmup: int = 10_000) -> ARAM:
    """ARAM as its authors set it, with a replay for all steps of the task.

    But for the actor's loss: one draw for each state instead of 100, and the present critic alone instead of 5 critics
    times 4 preferences, which would be 2,000 times the cost of that loss.
    """
    return ARAM(reward_scale=reward_scale, reward_shift=reward_shift, warmup=warmup, replay_size=steps)


def sequential() -> SequentialPPO:
    """PASPO as its authors set it; they name no discount."""
    return SequentialPPO(
        horizon=512, minibatch=64, epochs=10, rate=1e-3, clip=0.3, entropy_weight=0.01, discount=0.99, trace=0.95
    )
