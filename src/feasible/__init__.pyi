"""The public names: the one list of them, for type checkers and, read by `__init__.py`, for the package itself."""

from feasible import algorithms as algorithms
from feasible import constraints as constraints
from feasible import envs as envs
from feasible import sets as sets
from feasible.agents import FOCOPS as FOCOPS
from feasible.agents import NFWPO as NFWPO
from feasible.agents import PPO as PPO
from feasible.agents import SAC as SAC
from feasible.agents import TD3 as TD3
from feasible.agents import TRPO as TRPO
from feasible.agents import Agent as Agent
from feasible.agents import DDPGOptLayer as DDPGOptLayer
from feasible.agents import DDPGProjection as DDPGProjection
from feasible.agents import DDPGShaping as DDPGShaping
from feasible.agents import ProjectedGradient as ProjectedGradient
from feasible.agents import agent as agent
from feasible.agents import load as load
from feasible.agents import resume as resume
from feasible.catalogue.method import Method as Method
from feasible.catalogue.registry import make as make
from feasible.catalogue.registry import make_vec as make_vec
from feasible.catalogue.registry import register_method as register_method
from feasible.catalogue.registry import register_task as register_task
from feasible.catalogue.task import Task as Task
from feasible.commands import compare as compare
from feasible.commands import train as train
from feasible.commands import write_report as write_report
from feasible.constraints import Constraint as Constraint
from feasible.constraints import constrain as constrain
from feasible.constraints import remember_action as remember_action
from feasible.errors import EmptySetError as EmptySetError
from feasible.errors import InfeasibleActionError as InfeasibleActionError

__version__: str
