"""Tasks that are not ours: a `Task` in a module of the user's, as `module:name`, or one that a package announces.

Naming such a task imports its module, which runs the module's code; nothing but a `Task` is taken from it, and nothing
of it is called before the task is used.
"""

import importlib
import os
import re
import sys
from importlib.metadata import entry_points
from pathlib import Path

from feasible.catalogue.task import Task
from feasible.errors import TaskNotFoundError, first_line

GROUP = "feasible.tasks"
"""The group of entry points in which a package announces tasks: NAME = "module:attribute"."""
_NAME = re.compile(r"(?P<module>[^\W\d]\w*(\.[^\W\d]\w*)*):(?P<attribute>[^\W\d]\w*)")


def is_elsewhere(name: str) -> bool:
    """Whether a name is that of a task in a module."""
    return ":" in name


def imported(name: str) -> Task:
    """The task `module:name`; the current folder is looked in first."""
    parts = _NAME.fullmatch(name)
    if parts is None:
        raise TaskNotFoundError(
            f"task: {name!r} is no module:name, with a dotted module name before the colon and a name in it after."
        )
    module_name, attribute = parts["module"], parts["attribute"]
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as cause:
        if cause.name is None or not (module_name == cause.name or module_name.startswith(f"{cause.name}.")):
            raise TaskNotFoundError(f"task: importing {module_name!r} failed: {cause}.") from cause
        raise TaskNotFoundError(
            f"task: there is no module {cause.name!r}; it was looked for in the current folder, {os.getcwd()}, and "
            "where Python finds packages (PYTHONPATH)."
        ) from cause
    except (Exception, SystemExit) as cause:
        raise TaskNotFoundError(f"task: importing {module_name!r} failed: {first_line(cause)}.") from cause
    found = vars(module).get(attribute)
    if isinstance(found, Task):
        return found
    there = [known for known, value in vars(module).items() if isinstance(value, Task)]
    what = f"has no {attribute!r}" if attribute not in vars(module) else f"has {attribute!r}, but that is no Task"
    other = f"; its tasks are {', '.join(there)}" if there else ", and no Task at all"
    where = getattr(module, "__file__", "built in")
    raise TaskNotFoundError(f"task: the module {module_name!r} ({where}) {what}{other}.")


def announced() -> dict[str, str]:
    """The tasks of installed packages: their names, with the `module:name` of each."""
    return {point.name: point.value for point in entry_points(group=GROUP)}


def place_of(task: Task) -> str | None:
    """The `module:name` under which another process finds a task; None where no module holds it."""
    own = getattr(task.constraint, "__module__", None)  # of several that hold it, most likely where it was made
    for module_name, module in sorted(sys.modules.items(), key=lambda item: item[0] != own):
        if module_name in ("__main__", "__mp_main__") or not _NAME.fullmatch(f"{module_name}:x"):
            continue
        for attribute, value in list(getattr(module, "__dict__", {}).items()):
            if value is task and _NAME.fullmatch(f"{module_name}:{attribute}"):
                return f"{module_name}:{attribute}"
    return None


def root_of(name: str) -> Path | None:
    """The folder from which the module of a `module:name` is imported; None for any other name, and for the module of
    an installed package."""
    if not is_elsewhere(name):
        return None
    module_name = name.partition(":")[0]
    module = sys.modules.get(module_name)
    file = getattr(module, "__file__", None)
    if file is None:
        return None
    path = Path(file).resolve()
    depth = module_name.count(".") + (path.name == "__init__.py")
    root = path.parents[depth]
    return None if root.name in ("site-packages", "dist-packages") else root
