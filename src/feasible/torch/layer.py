"""A feasible set as the last layer of a network."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The type checker also runs where PyTorch is not installed, and then takes this folder for it.

from collections.abc import Callable

import torch

from feasible.errors import unknown
from feasible.torch.crossing import Observations, Tensor
from feasible.torch.functions import Region, alpha, project, radial

MAPS: dict[str, Callable[..., Tensor]] = {"projection": project, "alpha": alpha, "radial": radial}


class Feasible(torch.nn.Module):
    """The map of a network's output into the feasible set of each row: `layer(output, obs)`.

    `map="projection"` takes actions of n entries, `"alpha"` and `"radial"` take d coordinates of the set's hull around
    its centre (`feasible.torch.functions`). The layer has no parameters. It is pickled by its constraint, so a
    function of a module travels to workers that are spawned, and a lambda does not.
    """

    def __init__(self, constraint: Region, map: str = "projection"):
        super().__init__()
        if map not in MAPS:
            raise unknown("map", map, MAPS, "Feasible: ")
        self.constraint, self.map = constraint, map

    def forward(self, output: Tensor, obs: Observations = None) -> Tensor:
        return MAPS[self.map](self.constraint, output, obs)

    def extra_repr(self) -> str:
        return f"map={self.map!r}"
