"""Algorithms as pure functions, and the factors they are made of: the values that a researcher composes.

| here | what it is |
|---|---|
| `DDPG`, `SAC`, `PPO`, `TRPO`, `FOCOPS`, `BikeTable` | base learners |
| `FrankWolfe`, `PolicyGradient`, `ThroughProjection`, `ProjectedGradient` | actor rules of the DDPG family |
| `fwpo` | Algorithm 1 of the paper, on a known finite process |
| `Algorithm`, `ActorRule`, `Spec`, `Decision`, `Transition` | what they are made of |
"""

from feasible.algorithms import fwpo as fwpo
from feasible.algorithms.actor_rules import ActorRule as ActorRule
from feasible.algorithms.actor_rules import FrankWolfe as FrankWolfe
from feasible.algorithms.actor_rules import PolicyGradient as PolicyGradient
from feasible.algorithms.actor_rules import ProjectedGradient as ProjectedGradient
from feasible.algorithms.actor_rules import ThroughProjection as ThroughProjection
from feasible.algorithms.base import Algorithm as Algorithm
from feasible.algorithms.base import Decision as Decision
from feasible.algorithms.base import Spec as Spec
from feasible.algorithms.base import Transition as Transition
from feasible.algorithms.ddpg import DDPG as DDPG
from feasible.algorithms.focops import FOCOPS as FOCOPS
from feasible.algorithms.fwpo_critic import BikeTable as BikeTable
from feasible.algorithms.ppo import PPO as PPO
from feasible.algorithms.sac import SAC as SAC
from feasible.algorithms.trpo import TRPO as TRPO
