"""The optional packages: what each extra of the installation brings, and the sentence for one that is missing."""

from importlib.util import find_spec

PACKAGES = {
    "mujoco": ("mujoco", "MuJoCo"),
    "network": ("numba", "Numba"),
    "video": ("imageio_ffmpeg", "imageio's ffmpeg"),
    "ray": ("ray", "Ray"),
    "tensorboard": ("tensorboard", "TensorBoard"),
    "cvxpy": ("cvxpy", "CVXPY"),
    "export": ("flatbuffers", "flatbuffers, with which JAX writes programs"),
    "torch": ("torch", "PyTorch"),
    "sb3": ("stable_baselines3", "Stable-Baselines3"),
}
"""By extra: the module that shows whether it is installed, and its name for people."""
SIMULATORS = {"mujoco": "mujoco", "bike_sharing": "network", "network": "network"}
"""By folder of `feasible.envs`: the extra that its simulator needs."""


class MissingExtraError(ImportError, ValueError):
    """Something needs a package that the base installation leaves out."""


def installed(extra: str) -> bool:
    """Whether the package of an extra can be imported here."""
    return find_spec(PACKAGES[extra][0]) is not None


def require(extra: str, what: str) -> None:
    """Refuse to go on without an extra, in one sentence that says how to install it."""
    if not installed(extra):
        raise MissingExtraError(f"{what} needs {PACKAGES[extra][1]}: pip install 'feasible[{extra}]'.")
