"""Constraints: functions from the raw observation to a feasible set, and environments that enforce them.

What an action may be is decided in `action_box` and certified there, by the one function that every path shares.
"""

from feasible.constraints.action_box import Constraint as Constraint
from feasible.constraints.action_box import Observation as Observation
from feasible.constraints.action_box import certified as certified
from feasible.constraints.action_box import fixed as fixed
from feasible.constraints.judge import Judge as Judge
from feasible.constraints.judge import OnInfeasible as OnInfeasible
from feasible.constraints.judge import Verdict as Verdict
from feasible.constraints.memory import remember_action as remember_action
from feasible.constraints.observations import Layout as Layout
from feasible.constraints.wrappers import ConstrainedEnv as ConstrainedEnv
from feasible.constraints.wrappers import ConstrainedVectorEnv as ConstrainedVectorEnv
from feasible.constraints.wrappers import constrain as constrain
