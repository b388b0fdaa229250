"""A data set whose items are projected, for workers of a DataLoader."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The type checker also runs where PyTorch is not installed, and then takes a folder of tests for it.

import jax.numpy as jnp
import torch

import feasible.torch as ft
from feasible import sets

LENGTH = 4


class Projected(torch.utils.data.Dataset):
    def __init__(self) -> None:
        self.layer = ft.Feasible(sets.Ball(jnp.zeros(2), 2.0))

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, row: int) -> torch.Tensor:
        return self.layer(torch.tensor([float(row), 0.0]))
