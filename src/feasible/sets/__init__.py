"""Feasible sets: each set is one value with membership, projection, linear maximisation and more."""

from feasible.sets.allocation import Allocation as Allocation
from feasible.sets.allocation import AllocationAtMost as AllocationAtMost
from feasible.sets.ball import Ball as Ball
from feasible.sets.ball_box import BallBox as BallBox
from feasible.sets.base import ActionSet as ActionSet
from feasible.sets.box import Box as Box
from feasible.sets.cones import Cone as Cone
from feasible.sets.cones import ConePolytope as ConePolytope
from feasible.sets.cvxpy.compiler import from_cvxpy as from_cvxpy
from feasible.sets.ellipsoid import EllipsoidBox as EllipsoidBox
from feasible.sets.half_space import HalfSpaceBox as HalfSpaceBox
from feasible.sets.integer_allocation import IntegerAllocation as IntegerAllocation
from feasible.sets.intersection import Intersection as Intersection
from feasible.sets.polytope import Polytope as Polytope
from feasible.sets.positive_power import PositivePowerBox as PositivePowerBox
from feasible.sets.turnover import TurnoverAllocation as TurnoverAllocation
from feasible.sets.weighted_l1 import WeightedL1Box as WeightedL1Box
from feasible.sets.weighted_l1_ellipsoid import WeightedL1EllipsoidBox as WeightedL1EllipsoidBox
