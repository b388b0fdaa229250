"""Action-constrained reinforcement learning: every executed action lies in the feasible set of its state."""

from feasible import sets as sets
from feasible.constraints import Constraint as Constraint
from feasible.constraints import constrain as constrain
from feasible.errors import EmptySetError as EmptySetError
from feasible.errors import InfeasibleActionError as InfeasibleActionError
