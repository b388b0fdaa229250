"""The registries: every task and method by name, and the algorithm that a method is on a task in a preset."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from feasible.catalogue import bike_sharing, methods, mujoco, network, portfolio, robots
from feasible.catalogue.elsewhere import announced, imported, is_elsewhere, place_of
from feasible.catalogue.method import Method
from feasible.catalogue.task import DEFAULT, Task
from feasible.errors import TaskNotFoundError, unknown

if TYPE_CHECKING:
    from feasible.algorithms.base import Algorithm
    from feasible.constraints import ConstrainedEnv, ConstrainedVectorEnv, OnInfeasible

_FAMILIES = (bike_sharing, network, mujoco, robots, portfolio)
OURS = {task.name: task for family in _FAMILIES for task in family.TASKS}
PAPERS = {name: task for name, task in OURS.items() if "paper" in task.presets}
"""The tasks of the paper."""
TASKS: dict[str, Task] = {**PAPERS, **OURS}
METHODS: dict[str, Method] = {method.name: method for method in methods.METHODS}
RECOMMENDED = "recommended"
"""The name of what `feasible.catalogue.recommended` chooses among the methods."""


def register_task(task: Task) -> Task:
    """Name a task in this process; a name that another task has is refused."""
    if TASKS.setdefault(task.name, task) is not task:
        raise ValueError(f"name: there is another task {task.name!r} already; choose another name.")
    return task


def register_method(method: Method) -> Method:
    """Name a method in this process; a name that another method has is refused."""
    if METHODS.setdefault(method.name, method) is not method:
        raise ValueError(f"name: there is another method {method.name!r} already; choose another name.")
    return method


def find_task(name: str) -> Task:
    """The task of that name: registered in this process, `module:name`, or announced by an installed package.

    For another name an error says which one may be meant.
    """
    if name in TASKS:
        return TASKS[name]
    if is_elsewhere(name):
        return imported(name)
    others = announced()
    if name in others:
        return imported(others[name])
    listed = "`feasible tasks` lists all; a task of your own is module:name."
    raise TaskNotFoundError(str(unknown("task", name, [*TASKS, *others], listed=listed)))


def name_of(task: Task) -> str | None:
    """The name by which any process finds a task: ours, or that of the module which holds it. None where none does."""
    return task.name if OURS.get(task.name) is task else place_of(task)


def known_as(task: "str | Task") -> str:
    """The name of a task in this process, which knows it from here on."""
    if isinstance(task, str):
        return task
    return name_of(task) or register_task(task).name


def known_here_only(name: str) -> bool:
    """Whether a task was registered in this process and others would not find it, or would find another by its name:
    one that an installed package announces."""
    registered = TASKS.get(name)
    if registered is None or OURS.get(name) is registered:
        return False
    try:
        return imported(announced()[name]) is not registered
    except (KeyError, TaskNotFoundError):
        return True


def find_method(name: str) -> Method:
    """The method of that name; for another name an error that says which one may be meant."""
    if name not in METHODS:
        raise unknown("algorithm", name, [*METHODS, RECOMMENDED])
    return METHODS[name]


def make(
    name: str, on_infeasible: "OnInfeasible" = "raise", render_mode: str | None = None, **options: object
) -> "ConstrainedEnv":
    """Make the environment of a task; `options` go to its environment (`feasible.envs`).

    An action outside the feasible set raises `InfeasibleActionError` and changes nothing. With
    `on_infeasible="project"` the nearest feasible action is executed instead.
    """
    return find_task(name).env(on_infeasible, render_mode, **options)


def make_vec(
    name: str, num_envs: int, on_infeasible: "OnInfeasible" = "raise", threads: int = 1, **options: object
) -> "ConstrainedVectorEnv":
    """Make `num_envs` copies of a task's environment that step together on `threads` threads.

    Copy i of seed s equals `make(name)` with seed s + i. An episode that ends restarts in the same step.
    """
    return find_task(name).copies(num_envs, on_infeasible, threads, **options)


def preset_for(task: Task, method: str) -> str:
    """The preset of a run that names none: the task's first that has the method, else the method's defaults."""
    return next((preset for preset in task.presets if method in task.preset(preset)), DEFAULT)


def algorithm_of(
    task: Task, name: str, preset: str | None = None, changes: Mapping[str, object] | None = None
) -> "Algorithm":
    """The algorithm that a method is on a task: in a preset of it (`preset_for` if none is named), or by default.

    `changes` override hyper-parameters, by the names that the algorithm has for them.
    """
    method, preset = find_method(name), preset or preset_for(task, name)
    if preset == DEFAULT:
        algorithm = method.make(task.spec)
    else:
        known = task.preset(preset)
        if name not in known:
            raise ValueError(
                f"algo: {name!r} is not in the preset {preset!r} of the task {task.name!r}, which has "
                f"{', '.join(known)}; use one of these, or --preset default."
            )
        algorithm = known[name]
    if not changes:
        return algorithm
    from feasible.algorithms.description import changed

    algorithm = changed(algorithm, changes, name)
    algorithm.check(task.spec)
    return algorithm
