"""Policies as files: plain numbers in an archive, safe to load from an untrusted sender.

The header says what to build; the objects are rebuilt by the same validating constructors that a user calls.
"""

from dataclasses import replace
from itertools import groupby
from os import PathLike
from typing import Any

import numpy as np

from eccaht.base.arrays import Array, as_count, as_number, frozen
from eccaht.base.codec import Field, Fields, Part, built, restore, state_of
from eccaht.base.files import arrays_of, check_keys, read_archive, write_archive
from eccaht.streams import covariance as operators, measurements
from eccaht.streams.covariance import Covariance, SparsePrecision
from eccaht.streams.measurements import Budget, Combined, Constraint, Rule
from eccaht.streams.policies.ask_tell import AskTell
from eccaht.streams.policies.catalogue import make_policy
from eccaht.streams.policies.parts import Choice, check_batches
from eccaht.streams.policies.policy import Policy
from eccaht.streams.problem import Problem
from eccaht.streams.shifts import ShiftPrior

_KIND, _VERSION = "policy", 5
_KEYS = {
    "": {"policy", "problem", "state"},
    "policy": {"name", "seed", "options"},
}
_PLAIN = ("n_anomalies", "readout_noise", "names", "degrees_of_freedom", "estimated_from")
_PACKED = ("covariance", "shift", "shift_spread", "mean")
_CHOICE: Fields = (Field("weights", ("K",)), Field("pair", (2,), int, high="K-1", optional=True))
_SEARCH: Fields = (
    Field("n_readings", (), int),
    Field("_rng", (), np.random.Generator),
    Part("_pending"),
    Field("_available", ("K",), bool, optional=True),
    Part("_choice", Choice, optional=True, fields=_CHOICE),
)
_OPERATORS = {
    name: kind
    for name, kind in vars(operators).items()
    if isinstance(kind, type) and issubclass(kind, Covariance) and kind is not Covariance
}
_MOST = 64  # parts of a constraint
_RULES = {
    name: kind
    for name, kind in vars(measurements).items()
    if isinstance(kind, type) and issubclass(kind, Rule) and kind not in (Rule, Combined)
}


def save_policy(policy: Policy, path: str | PathLike[str]) -> None:
    """Write a policy that was made by name; an existing file is replaced only once the new one is complete."""
    if policy.recipe is None:
        raise ValueError("only policies built by make_policy can be saved: a file names the recipe, not the code")
    if isinstance(policy.inside[0], AskTell):
        raise ValueError("an algorithm that asks and tells cannot be saved: no file knows what it remembers")
    recipe = policy.recipe
    for option, value in recipe.options.items():
        if callable(value):
            raise ValueError(f"{option}={value!r} cannot be saved: a file names the recipe, not the code")
    state = {
        "policy": {"name": recipe.name, "seed": list(recipe.seed), "options": recipe.options},
        "problem": packed_problem(policy.problem),
        "state": state_of(policy, _fields(policy)),
    }
    write_archive(path, _KIND, _VERSION, state)


def load_policy(path: str | PathLike[str]) -> Policy:
    """Read a policy that continues exactly where it was saved.

    One of your own must be registered: no module is imported because a file names it.
    """
    return read_archive(path, _KIND, _VERSION, _built)


def _built(state: dict[str, Any]) -> Policy:
    for part, keys in _KEYS.items():
        found = state[part] if part else state
        check_keys(found, keys, part or "header")
    recipe, problem = state["policy"], unpacked_problem(state["problem"], state)
    policy = make_policy(recipe["name"], problem, seed=recipe["seed"], **recipe["options"])
    sizes = {
        "K": problem.size,
        "n": problem.sizes[1],
        "t": as_count(state["state"]["n_readings"], "n_readings", least=0),
    }
    restore(policy, state["state"], sizes, _fields(policy))
    _check_asked(policy)
    return policy


def packed_problem(problem: Problem) -> dict[str, Any]:
    """A problem as plain data."""
    plain = {name: getattr(problem, name) for name in _PLAIN}
    packed = {name: _packed(getattr(problem, name)) for name in _PACKED}
    return {**plain, **packed, "budget": _packed_constraint(problem.measurements)}


def unpacked_problem(saved: Any, state: Any) -> Problem:
    """Build a problem again, from what an untrusted file says, of which `state` is all."""
    check_keys(saved, {*_PLAIN, *_PACKED, "budget"}, "problem")
    capacity = sum(array.size for array in arrays_of(state))  # a bound for every size that the file claims
    operator = _unpacked(saved["covariance"], capacity)
    if not isinstance(operator, Covariance) or operator.size > capacity:
        raise ValueError("its covariance is larger than what it holds values for")
    return Problem(
        operator,
        shift=ShiftPrior(saved["shift"], saved["shift_spread"]),
        measurements=_unpacked_constraint(saved["budget"]),
        mean=saved["mean"],
        calibrated=True,
        **{name: saved[name] for name in _PLAIN},
    )


def _fields(policy: Policy) -> Fields:
    """Of a search; the belief and the chooser of hds are one."""
    alone = id(policy._chooser) == id(policy._belief)
    return (*_SEARCH, Part("_belief"), *(() if alone else (Part("_chooser"),)))


def _check_asked(policy: Policy) -> None:
    """Check that a policy could have asked for the measurements that are under way, and for the next one."""
    problem, pending, choice = policy.problem, policy._pending, policy._choice
    if policy._available is not None or pending.awaited:
        check_batches(policy.can, "what it holds")
    if policy._available is not None and policy.problem.checked_mask(policy._available).all():
        raise ValueError("its available streams are damaged: none is missing")
    pending.awaited = tuple(replace(each, weights=_asked_for(problem, each.weights)) for each in pending.awaited)
    if choice is None:
        return
    weights = _asked_for(problem, choice.weights)
    if policy._available is not None and weights[~policy._available].any():
        raise ValueError("its measurement is of streams that are not available")
    pair = None if choice.pair is None else (int(choice.pair[0]), int(choice.pair[1]))
    if pair is not None and pair[0] == pair[1]:
        raise ValueError("its pair is damaged: it is one stream")
    policy._choice = Choice(weights, pair)


def _asked_for(problem: Problem, weights: Array) -> Array:
    weights = problem.checked_measurement(weights)
    if not problem.measurements.allows(weights):
        what = "exceeds the budget" if type(problem.measurements) is Budget else "is not allowed by its constraint"
        raise ValueError(f"its pending measurement {what}")
    return frozen(weights)


def _packed(value: Any) -> Any:
    """An operator as its type and parameters."""
    if isinstance(value, Covariance):
        if _OPERATORS.get(type(value).__name__) is not type(value):
            raise ValueError(f"a covariance of type {type(value).__name__} cannot be saved: use one of eccaht's")
        parameters = {key: _packed(part) for key, part in value.parameters().items()}
        return {"operator": type(value).__name__, "parameters": parameters}
    if isinstance(value, list):  # blocks, of which equal neighbours (the same object) are written once
        groups = [list(same) for _, same in groupby(value, key=id)]
        return {"runs": [[_packed(same[0]), len(same)] for same in groups]}
    if isinstance(value, np.ndarray) and value.strides == (0,):  # one value repeated
        return float(value[0])
    return value


def _unpacked(value: Any, capacity: int) -> Any:
    """Build an operator again."""
    if not isinstance(value, dict):
        return value if isinstance(value, np.ndarray) or type(value) is int else as_number(value, "a number")
    if set(value) == {"runs"}:
        counts = [as_count(count, "a number of blocks", least=1) for _, count in value["runs"]]
        if sum(counts) > capacity:
            raise ValueError("it claims more blocks than it holds values")
        blocks = [_unpacked(item, capacity) for item, _ in value["runs"]]
        return [block for block, count in zip(blocks, counts, strict=True) for _ in range(count)]
    check_keys(value, {"operator", "parameters"}, "covariance")
    kind = _OPERATORS[value["operator"]]
    parameters = {key: _unpacked(part, capacity) for key, part in value["parameters"].items()}
    return SparsePrecision.from_parameters(**parameters) if kind is SparsePrecision else kind(**parameters)


def _packed_constraint(within: Constraint) -> Any:
    """A number for the L1 budget, a list of parts for the others."""
    if type(within) is Budget:
        return within.limit
    if not isinstance(within, Rule) or any(_kind(part) is None for part in within.parts):
        raise ValueError(f"a policy under {within!r} cannot be saved: only those of eccaht's constraints can")
    return [
        {"rule": _kind(part), "parameters": state_of(part) if isinstance(part, Rule) else {"limit": part.limit}}
        for part in within.parts
    ]


def _kind(part: Constraint) -> str | None:
    """The name of a constraint of eccaht; a subclass may have rules of its own."""
    if type(part) is Budget:
        return "Budget"
    name = type(part).__name__
    return name if _RULES.get(name) is type(part) else None


def _unpacked_constraint(saved: Any) -> Constraint:
    if not isinstance(saved, list):
        return Budget(as_number(saved, "budget"))
    if not 1 <= len(saved) <= _MOST:
        raise ValueError("its measurements are damaged")
    parts = [_unpacked_rule(part) for part in saved]
    return parts[0] if len(parts) == 1 else Combined(*parts)


def _unpacked_rule(saved: Any) -> Constraint:
    check_keys(saved, {"rule", "parameters"}, "constraint")
    if saved["rule"] == "Budget":
        check_keys(saved["parameters"], {"limit"}, "budget")
        return Budget(as_number(saved["parameters"]["limit"], "budget"))
    return built(_RULES[saved["rule"]], saved["parameters"], {}, what="constraint")
