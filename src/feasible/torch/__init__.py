"""The geometry for PyTorch: projections, oracles and maps of feasible sets as differentiable functions of tensors.

    import feasible.torch as ft

    action = ft.project(constraint, z, obs)                # one row per observation, differentiable in z and obs
    layer = ft.Feasible(constraint, map="projection")      # the same as the last layer of a network

Importing `feasible` does not load this package, which needs PyTorch: `pip install 'feasible[torch]'`.
"""

try:
    import torch as _torch  # noqa: F401  # pyright: ignore[reportMissingImports]
except ModuleNotFoundError as cause:
    raise ModuleNotFoundError("feasible.torch needs PyTorch: pip install 'feasible[torch]'.", name="torch") from cause

from feasible.torch.functions import alpha as alpha
from feasible.torch.functions import maximise_linear as maximise_linear
from feasible.torch.functions import project as project
from feasible.torch.functions import radial as radial
from feasible.torch.gaussian import MappedGaussian as MappedGaussian
from feasible.torch.layer import Feasible as Feasible
