"""Policies as files: plain numbers in an archive, safe to load from strangers.

The header says what to build; the objects are rebuilt by the same validating constructors that a user calls.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from eccaht import covariance as operators
from eccaht.archive import check_keys, read_archive, write_archive
from eccaht.arrays import Array, as_count, as_number
from eccaht.covariance import Covariance, SparsePrecision
from eccaht.measurements import Budget
from eccaht.policies.catalogue import make_policy
from eccaht.policies.policy import Policy
from eccaht.problem import Problem
from eccaht.shifts import ShiftPrior

_KIND, _VERSION = "policy", 3
_KEYS = {
    "": {"policy", "problem", "state"},
    "policy": {"name", "seed", "options"},
    "problem": {"covariance", "n_anomalies", "budget", "shift", "shift_spread", "readout_noise", "mean", "names"},
    "state": {"n_told", "rng", "pair"},
}
_OPERATORS = {
    name: kind
    for name, kind in vars(operators).items()
    if isinstance(kind, type) and issubclass(kind, Covariance) and kind is not Covariance
}


def save_policy(policy: Policy, path: str | PathLike[str]) -> None:
    """Write a policy that was made by name; an existing file is replaced only once the new one is complete."""
    if policy.recipe is None:
        raise ValueError("only policies built by make_policy can be saved: a file names the recipe, not the code")
    recipe, problem = policy.recipe, policy.problem
    if not isinstance(problem.measurements, Budget):
        raise ValueError(f"a policy under {problem.measurements!r} cannot be saved: only that of an L1 budget can")
    arrays, plain = policy._state()
    header = {
        "policy": {"name": recipe.name, "seed": list(recipe.seed), "options": recipe.options},
        "problem": {
            "covariance": _pack(problem.covariance, "covariance", arrays),
            "n_anomalies": problem.n_anomalies,
            "budget": problem.budget,
            "shift": _pack_vector(problem.shift, "shift", arrays),
            "shift_spread": _pack_vector(problem.shift_spread, "shift_spread", arrays),
            "readout_noise": problem.readout_noise,
            "mean": _pack_vector(problem.mean, "mean", arrays),
            "names": problem.names,
        },
        "state": plain,
    }
    write_archive(path, _KIND, _VERSION, header, arrays, plain=_plain)


def load_policy(path: str | PathLike[str]) -> Policy:
    """Read a policy that continues exactly where it was saved."""
    return read_archive(path, _KIND, _VERSION, _build)


def _build(header: dict[str, Any], arrays: dict[str, Array]) -> Policy:
    for part, keys in _KEYS.items():
        check_keys(header[part] if part else header, keys, part or "header")
    told, recipe, state = header["problem"], header["policy"], header["state"]
    capacity = sum(array.size for array in arrays.values())  # a bound for every size that the header claims
    operator = _unpack(told["covariance"], arrays, capacity)
    if not isinstance(operator, Covariance) or operator.size > capacity:
        raise ValueError("its covariance is larger than what it holds values for")
    problem = Problem(
        operator,
        shift=ShiftPrior(_vector(told["shift"], arrays), _vector(told["shift_spread"], arrays)),
        n_anomalies=told["n_anomalies"],
        readout_noise=told["readout_noise"],
        budget=told["budget"],
        mean=_vector(told["mean"], arrays),
        names=told["names"],
    )
    policy = make_policy(recipe["name"], problem, seed=recipe["seed"], **recipe["options"])
    _check_state(policy._state()[0], arrays, problem.size)
    policy._restore(arrays, state)
    return policy


def _check_state(fresh: dict[str, Array], arrays: dict[str, Array], size: int) -> None:
    """The state must have the shapes of a fresh policy's, but for tables that gain rows, and be finite."""
    shapes = {name: array.shape for name, array in fresh.items()}
    if "choice" in arrays:
        shapes["choice"] = (size,)
    check_keys(arrays, set(shapes), "state")
    for name, shape in shapes.items():
        found = arrays[name]
        fits = found.ndim == 2 and found.shape[1:] == shape[1:] if len(shape) == 2 else found.shape == shape
        if not fits or found.dtype != np.float64 or not np.isfinite(found).all():
            raise ValueError(f"{name} is damaged")


# -- covariances and vectors ---------------------------------------------------------------------------


def _pack(value: Any, name: str, arrays: dict[str, Array]) -> Any:
    """Describe an operator by its parameters; arrays go to the archive and leave their name."""
    if isinstance(value, Covariance):
        if _OPERATORS.get(type(value).__name__) is not type(value):
            raise ValueError(f"a covariance of type {type(value).__name__} cannot be saved: use one of eccaht's")
        inner = {key: _pack(part, f"{name}.{key}", arrays) for key, part in value.parameters().items()}
        return {"operator": type(value).__name__, "parameters": inner}
    if isinstance(value, list):
        return _pack_list(value, name, arrays)
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"array": name}
    return value


def _pack_list(blocks: list[Covariance], name: str, arrays: dict[str, Array]) -> dict[str, Any]:
    """Equal neighbours (the same object) are written once."""
    runs: list[list[Any]] = []
    last: Covariance | None = None
    for block in blocks:
        if block is last:
            runs[-1][1] += 1
        else:
            runs.append([_pack(block, f"{name}.{len(runs)}", arrays), 1])
        last = block
    return {"runs": runs}


def _unpack(value: Any, arrays: dict[str, Array], capacity: int) -> Any:
    """Build an operator again; every array is taken out and belongs to one place only."""
    if not isinstance(value, dict):
        return value if type(value) is int else as_number(value, "a number")
    if set(value) == {"array"}:
        return arrays.pop(value["array"])
    if set(value) == {"runs"}:
        counts = [as_count(count, "a number of blocks", least=1) for _, count in value["runs"]]
        if sum(counts) > capacity:
            raise ValueError("it claims more blocks than it holds values")
        blocks = [_unpack(item, arrays, capacity) for item, _ in value["runs"]]
        return [block for block, count in zip(blocks, counts, strict=True) for _ in range(count)]
    check_keys(value, {"operator", "parameters"}, "covariance")
    kind = _OPERATORS[value["operator"]]
    parameters = {key: _unpack(part, arrays, capacity) for key, part in value["parameters"].items()}
    return SparsePrecision.from_parameters(**parameters) if kind is SparsePrecision else kind(**parameters)


def _pack_vector(vector: Array, name: str, arrays: dict[str, Array]) -> Any:
    """A vector that repeats one value (stride 0) is written as that value."""
    return float(vector[0]) if vector.strides == (0,) else _pack(vector, name, arrays)


def _vector(told: Any, arrays: dict[str, Array]) -> Any:
    """What `_pack_vector` wrote."""
    return arrays.pop(told["array"]) if isinstance(told, dict) else as_number(told, "a number")


def _plain(value: Any) -> Any:
    """Numbers and arrays among a policy's options, as JSON has them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise ValueError(f"an option of type {type(value).__name__} cannot be saved: use numbers and lists")
