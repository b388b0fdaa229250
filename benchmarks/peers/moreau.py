"""moreau, a batched conic solver with derivatives, as a backend of cvxpylayers; one thread, double precision.

It picks its method by itself: an active-set method for small quadratic programs, interior points with second-order
cones. cvxpy 1.9 hands it `a >= 0` and `||a|| <= r` as cones on variables, which cvxpylayers 1.2 leaves out: its answers
are then outside the set, without a word. Written as 2 a >= 0 and ||2 a|| <= 2 r they are rows, and its answers right.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The type checker also runs where the peers are not installed.

import moreau
import torch

from benchmarks.peers import Solver
from benchmarks.peers.cvxpylayers import CvxpyLayers


def solvers(dtype: str) -> list[Solver]:
    """On the GPU where PyTorch sees one, which asks for moreau's CUDA package too; else on the CPU."""
    if not torch.cuda.is_available():
        return [CvxpyLayers("cvxpylayers, moreau", {"solver": "MOREAU"}, {}, unit=2.0)]
    if not moreau.device_available("cuda"):
        raise ImportError(moreau.device_error("cuda") or "its package for this machine's CUDA is not installed")
    return [CvxpyLayers("cvxpylayers, moreau (CUDA)", {"solver": "MOREAU"}, {}, unit=2.0, device="cuda")]
