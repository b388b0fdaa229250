"""The field's tasks of robots, with the budgets and evaluations of their suites.

Of omron's benchmark: 5 episodes every 5,000 steps. Of ARAM: 10 episodes every 10,000 steps.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from feasible.catalogue.task import Preset, Task

if TYPE_CHECKING:
    from feasible.catalogue.presets import Algorithms


def _reacher_field() -> "Algorithms":
    from feasible.catalogue.field import reacher_field

    return reacher_field()


def _runner_field() -> "Algorithms":
    """HalfCheetah and Walker2d."""
    from feasible.catalogue.field import field

    return field(frank_wolfe_step=0.01)


def _hopper_field() -> "Algorithms":
    """The step sizes of TD3 are Hopper's own, but for its Frank-Wolfe rule, as in its suite."""
    from feasible.catalogue.field import field

    own = {"actor_rate": 3e-4, "critic_rate": 3e-4, "batch_size": 256}
    usual = field(frank_wolfe_step=0.01, td3={"batch_size": 256})
    return {**field(frank_wolfe_step=0.01, td3=own), "td3-nfwpo": usual["td3-nfwpo"]}


def _hopper_power_field() -> "Algorithms":
    from feasible.catalogue.other_suites import aram

    return {**_hopper_field(), "aram": aram(steps=1_000_000)}


def _aram_field() -> "Algorithms":
    from feasible.catalogue.other_suites import aram

    return {"aram": aram(steps=1_500_000)}


def _task(
    name: str,
    make: str,
    title: str,
    words: str,
    sizes: tuple[int, int, int],
    options: Mapping[str, object],
    preset: Preset | None,
    *,
    steps: int,
    eval_every: int = 5_000,
    episodes: int = 5,
) -> Task:
    observation_size, action_size, episode_length = sizes
    return Task(
        name,
        f"feasible/{make}-v0",
        title=title,
        words=words,
        steps=steps,
        eval_every=eval_every,
        episodes=episodes,
        options=options,
        sizes={
            "observation_size": observation_size,
            "action_size": action_size,
            "episode_length": episode_length,
        },
        presets={"field": preset} if preset else {},
    )


def _swinging(name: str, make: str, moves: str, reads: str, sizes: tuple[int, int, int], preset: Preset) -> Task:
    """A limit on power and one on the swing of bent joints."""
    title = f"a {moves} robot with a limit on its power and one on joints that are bent"
    words = f"|a_i| <= 1, sum |w_i a_i| <= 10, sum a_i^2 sin^2 th_i <= 0.1, {reads}"
    return _task(name, make, title, words, sizes, {"limit": "power-and-swing"}, preset, steps=1_000_000)


_ARM, _TIP = (11, 2, 50), "a_1^2 + 2 a_1 (a_1 + a_2) cos t + (a_1 + a_2)^2 <= 0.05"
_SPEEDS = "w_i a tenth of the speed of joint i in rad/s (observation 6, 7)"
_HOPPER = "w_i the angular velocity of joint i (observation 8 to 10)"
_WALKER = "w_i the angular velocity of joint i (observation 11 to 16)"
_ARAMS = {"steps": 1_500_000, "eval_every": 10_000, "episodes": 10}
TASKS = (
    *(
        _task(
            f"reacher-power-{name}",
            "Reacher",
            f"a robot arm with a limit of {budget:g} on its power",
            f"|a_i| <= 1, sum |w_i a_i| <= {budget:g}, {_SPEEDS}",
            _ARM,
            {"limit": "power", "budget": budget},
            _reacher_field,
            steps=300_000,
        )
        for name, budget in (("03", 0.3), ("1", 1.0), ("3", 3.0))
    ),
    _task(
        "reacher-positive",
        "Reacher",
        "a robot arm with a limit on the power it draws; braking is free",
        f"|a_i| <= 1, sum max(w_i a_i, 0) <= 1, {_SPEEDS}",
        _ARM,
        {"limit": "positive-power"},
        _reacher_field,
        steps=300_000,
    ),
    _task(
        "reacher-tip",
        "Reacher",
        "a robot arm with a limit on what its joints do to the tip",
        f"|a_i| <= 1, {_TIP}, t the angle of the elbow (cosine: observation 1)",
        _ARM,
        {"limit": "tip"},
        _reacher_field,
        steps=300_000,
    ),
    _task(
        "reacher-rate",
        "Reacher",
        "a robot arm with a limit on how fast its torques change",
        "|a_i| <= 1, |a - b| <= 0.2, b the last action (observation 11, 12)",
        (13, 2, 50),
        {"limit": "rate"},
        None,
        steps=300_000,
        episodes=10,
    ),
    _task(
        "halfcheetah-ma",
        "HalfCheetah",
        "a running robot with a limit on the power of its thighs, by the angles of its legs",
        "|a_i| <= 1, w_1 a_1 sin(th_1 + th_2 + th_3) + w_4 a_4 sin(th_4 + th_5 + th_6) <= 5, w_i the angular velocity "
        "(observation 11 to 16) and th_i the angle (2 to 7) of joint i",
        (17, 6, 1000),
        {"limit": "mean-angle"},
        _runner_field,
        steps=1_000_000,
    ),
    _task(
        "hopper-power",
        "Hopper",
        "a hopping robot with a limit on the power it draws",
        f"|a_i| <= 1, sum max(w_i a_i, 0) <= 10, {_HOPPER}",
        (11, 3, 1000),
        {},
        _hopper_power_field,
        steps=1_000_000,
    ),
    _swinging("hopper-os", "Hopper", "hopping", f"{_HOPPER}, th_i its angle (2 to 4)", (11, 3, 1000), _hopper_field),
    _task(
        "hopper-speed",
        "Hopper",
        "a hopping robot that keeps a speed of 3, with a limit on the power it draws",
        f"|a_i| <= 1, sum max(w_i a_i, 0) <= 10, {_HOPPER}",
        (11, 3, 1000),
        {"target_speed": 3.0},
        _aram_field,
        **_ARAMS,
    ),
    _task(
        "walker-power",
        "Walker2d",
        "a walking robot with a limit on the power it draws",
        f"|a_i| <= 1, sum max(w_i a_i, 0) <= 10, {_WALKER}",
        (17, 6, 1000),
        {},
        _runner_field,
        steps=1_000_000,
    ),
    _swinging("walker-os", "Walker2d", "walking", f"{_WALKER}, th_i its angle (2 to 7)", (17, 6, 1000), _runner_field),
    _task(
        "ant-ball",
        "Ant",
        "a robot on four legs with a limit on its torques",
        "|a_i| <= 1, sum a_i^2 <= 2",
        (27, 8, 1000),
        {},
        _aram_field,
        **_ARAMS,
    ),
    _task(
        "humanoid-ball",
        "Humanoid",
        "a humanoid robot with a limit on its torques",
        "|a_i| <= 0.4, sum a_i^2 <= 0.68",
        (45, 17, 1000),
        {},
        None,
        **_ARAMS,
    ),
)
