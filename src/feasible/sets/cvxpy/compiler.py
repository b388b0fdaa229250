"""Sets from CVXPY: constraints written in its language, compiled once to the library's own batched kernels."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from feasible.extras import require
from feasible.sets.cvxpy.budgets import Budget, find_budget
from feasible.sets.cvxpy.elimination import Block, Kind, NotRepresentableError, eliminate, substitute
from feasible.sets.cvxpy.parametric import ParametricSet, Symbol

if TYPE_CHECKING:
    import cvxpy as cp
    from cvxpy.reductions.dcp2cone.cone_matrix_stuffing import ParamConeProg

# Attributes of parameters after which CVXPY counts only some of their entries.
_REDUCED = ("symmetric", "diag", "PSD", "NSD", "hermitian", "sparsity")


def from_cvxpy(
    variable: "cp.Variable", constraints: Sequence["cp.Constraint"], parameters: Sequence["cp.Parameter"] = ()
) -> ParametricSet:
    """{variable : constraints} as a function of the values of `parameters`, in their order.

    >>> torque, speed = cp.Variable(6), cp.Parameter(6)
    >>> power = from_cvxpy(torque, [cp.norm1(cp.multiply(speed, torque)) <= 20, cp.abs(torque) <= 1], [speed])
    >>> env = feasible.constrain(gym.make("HalfCheetah-v5"), lambda obs: power(obs[11:17]))

    CVXPY's own canonical form is the source: the constraints must follow its rules for disciplined parametrised
    programs (DPP), by which every row is an affine function of the parameters. What reduces to linear rows and
    second-order cones on the variable itself is represented exactly. Variables that the canonical form adds are
    eliminated (`feasible.sets.cvxpy.elimination`), in at most 512 rows for a constraint; a budget on sum |w_i a_i| or
    sum max(w_i a_i, 0) keeps its closed form. Everything else is refused with a sentence that names the constraint:
    semi-definite, exponential and power cones, integer variables, nested or added norms, and entries of the variable
    without bounds.

    The work of CVXPY, milliseconds a constraint, is done here. A call of the answer is one matrix product with the
    parameters and the construction of the set; questions cost what that set's do (`ParametricSet` says which it is).
    CVXPY is needed here and nowhere else: pip install 'feasible[cvxpy]'.
    """
    require("cvxpy", "from_cvxpy")
    import cvxpy as cp

    if not isinstance(variable, cp.Variable) or variable.ndim != 1:
        raise ValueError("from_cvxpy: variable must be a cvxpy.Variable that is a vector, like the action.")
    symbols = [_symbol(parameter) for parameter in parameters]
    signs = np.array([symbol.sign for symbol in symbols for _ in range(symbol.size)] + [1], np.int8)
    blocks: list[Block] = []
    budgets: list[tuple[Budget, list[Block], str]] = []
    # Attributes of the variable, such as nonneg, come first, and again with every constraint.
    for said, stated in [("the variable", []), *_apart(variable, constraints)]:
        try:
            canonical = _new(_canonical(variable, stated, parameters), blocks, variable.size)
            budget = find_budget(canonical, variable.size, signs) if canonical else None
            if budget is not None:
                budgets.append((budget, canonical, said))
            else:
                blocks += eliminate(canonical, variable.size, signs)
        except NotRepresentableError as cause:
            raise ValueError(f"from_cvxpy: {said} cannot be represented, since {cause}.") from cause
    if len(budgets) == 1:
        whole = _assembled(variable, symbols, blocks, budgets[0][0])
        if whole.combines or all(block.kind != "cone" for block in blocks):
            return whole
    for _, canonical, said in budgets:
        try:
            blocks += eliminate(canonical, variable.size, signs)
        except NotRepresentableError as cause:
            raise ValueError(f"from_cvxpy: {said} cannot be represented beside the others, since {cause}.") from cause
    return _assembled(variable, symbols, blocks, None)


def _assembled(
    variable: "cp.Variable", symbols: Sequence[Symbol], blocks: Sequence[Block], budget: Budget | None
) -> ParametricSet:
    try:
        return ParametricSet(variable.size, symbols, blocks, budget)
    except NotRepresentableError as cause:
        raise ValueError(f"from_cvxpy: {cause}.") from cause


def _apart(variable: "cp.Variable", constraints: Sequence["cp.Constraint"]) -> list[tuple[str, list["cp.Constraint"]]]:
    """The constraints one by one, each with its name in a sentence; those with other variables all together."""
    alone = [c for c in constraints if all(other.id == variable.id for other in c.variables())]
    joined = [c for c in constraints if not any(c is other for other in alone)]
    named = [(f"the constraint {_short(c)}", [c]) for c in alone]
    if len(joined) == 1:
        return [*named, (f"the constraint {_short(joined[0])}", joined)]
    return [*named, ("the constraints with other variables", joined)] if joined else named


def _short(constraint: "cp.Constraint") -> str:
    text = " ".join(str(constraint).split())
    return text if len(text) <= 100 else f"{text[:97]}..."


def _symbol(parameter: "cp.Parameter") -> Symbol:
    reduced = [name for name in _REDUCED if parameter.attributes.get(name)]
    if reduced or parameter.is_complex():
        raise ValueError(
            f"from_cvxpy: the parameter {parameter.name()} is declared {', '.join(reduced) or 'complex'}; "
            "declare it without, or with nonneg or nonpos only."
        )
    return Symbol(parameter.name(), parameter.shape, int(parameter.is_nonneg()) - int(parameter.is_nonpos()))


def _canonical(
    variable: "cp.Variable", constraints: Sequence["cp.Constraint"], parameters: Sequence["cp.Parameter"]
) -> list[Block]:
    """The constraints in CVXPY's canonical form, over the columns (variable, what it adds, 1).

    The solver only names a standard form, A x + b in zero x nonnegative x second-order x other cones; none is called.
    """
    import cvxpy as cp

    # Attributes make CVXPY replace the variable by one of its own; then the action is defined as equal to it.
    plain = not any(value is not None and value is not False for value in variable.attributes.values())
    action = variable if plain else cp.Variable(variable.size)
    problem = cp.Problem(cp.Minimize(cp.sum(action)), list(constraints) + ([] if plain else [variable == action]))
    _check(problem, parameters)
    program = problem.get_problem_data(cp.CLARABEL)[0]["param_prob"]
    dims = program.cone_dims
    others = {"a semi-definite": dims.psd, "an exponential": dims.exp, "a power": [*dims.p3d, *dims.pnd]}
    for name, there in others.items():
        if there:
            raise NotRepresentableError(
                f"it needs {name} cone, and only linear rows and second-order cones are supported"
            )
    rows = _rows(program, action, parameters)
    kinds: list[tuple[Kind, int]] = [("equal", dims.zero)] if dims.zero else []
    kinds += [("linear", 1)] * dims.nonneg + [("cone", size) for size in dims.soc]
    starts = np.cumsum([0, *(size for _, size in kinds)])
    blocks = [Block(kind, rows[first : first + size]) for (kind, size), first in zip(kinds, starts, strict=False)]
    return substitute(blocks, variable.size)


def _check(problem: "cp.Problem", parameters: Sequence["cp.Parameter"]) -> None:
    whole = [variable.name() for variable in problem.variables() if _whole(variable)]
    if whole:
        raise NotRepresentableError(f"the variable {whole[0]} is integer or boolean, and the sets are convex")
    if any(variable.is_complex() for variable in problem.variables()):
        raise NotRepresentableError("a variable of it is complex")
    known = {parameter.id for parameter in parameters}
    unknown = [parameter.name() for parameter in problem.parameters() if parameter.id not in known]
    if unknown:
        raise NotRepresentableError(f"its parameter {unknown[0]} is not among the parameters given")
    if not problem.is_dcp():
        raise NotRepresentableError("it is not convex by CVXPY's rules (DCP)")
    if not problem.is_dpp():
        raise NotRepresentableError(
            "its parameters do not enter as CVXPY's rules for parametrised programs ask (DPP): no parameter may be "
            "multiplied with another, or go through a function that is not affine"
        )


def _rows(program: "ParamConeProg", action: "cp.Variable", parameters: Sequence["cp.Parameter"]) -> NDArray[np.float64]:
    """A and b of CVXPY's program as affine functions: (row, column with b last and the action first, parameter)."""
    width = program.x.size + 1
    tensor = program.A.toarray()
    tensor = tensor.reshape(tensor.shape[0] // width, width, tensor.shape[1], order="F")
    start = program.var_id_to_col[action.id]
    own = list(range(start, start + action.size))
    rows = tensor[:, own + [column for column in range(width) if column not in own]]
    pieces = [
        rows[..., first : first + parameter.size]
        if (first := program.param_id_to_col.get(parameter.id)) is not None
        else np.zeros((*rows.shape[:2], parameter.size))
        for parameter in parameters
    ]
    return np.concatenate([*pieces, rows[..., -1:]], axis=-1)


def _new(canonical: Sequence[Block], known: Sequence[Block], actions: int) -> list[Block]:
    """Those of a constraint's blocks that are not among the known ones, which are on actions only."""
    fresh = []
    for block in canonical:
        others = np.delete(block.rows, range(actions, block.rows.shape[1] - 1), axis=1)
        bare = not np.any(block.rows[:, actions:-1])
        if not (bare and any(block.kind == old.kind and np.array_equal(others, old.rows) for old in known)):
            fresh.append(block)
    return fresh


def _whole(variable: "cp.Variable") -> bool:
    return bool(variable.attributes["integer"] or variable.attributes["boolean"])
