"""Policies as files: plain numbers in an archive, safe to load from an untrusted sender.

The header says what to build; the objects are rebuilt by the same validating constructors that a user calls.
"""

from __future__ import annotations

import re
from itertools import groupby
from os import PathLike
from typing import Any

import numpy as np

from eccaht.base.arrays import Array, as_count, as_number, frozen, whole_numbers
from eccaht.base.files import check_keys, part_of, read_archive, write_archive
from eccaht.streams import covariance as operators
from eccaht.streams import measurements
from eccaht.streams.covariance import Covariance, SparsePrecision
from eccaht.streams.measurements import Budget, Combined, Constraint, Rule
from eccaht.streams.policies.catalogue import BUILT_IN, find_entry, make_policy, policy_names
from eccaht.streams.policies.parts import Choice, Chooser, check_batches
from eccaht.streams.policies.policy import Policy
from eccaht.streams.posterior import Belief
from eccaht.streams.problem import Problem
from eccaht.streams.shifts import ShiftPrior

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
_MOST = 64  # parts of a constraint
_MODULE = re.compile(r"\w[\w.-]{0,99}", re.ASCII)
_RULES = {
    name: kind
    for name, kind in vars(measurements).items()
    if isinstance(kind, type) and issubclass(kind, Rule) and kind not in (Rule, Combined)
}


def save_policy(policy: Policy, path: str | PathLike[str]) -> None:
    """Write a policy that was made by name; an existing file is replaced only once the new one is complete."""
    if policy.recipe is None:
        raise ValueError("only policies built by make_policy can be saved: a file names the recipe, not the code")
    recipe, problem = policy.recipe, policy.problem
    for option, value in recipe.options.items():
        if callable(value):
            raise ValueError(f"{option}={value!r} cannot be saved: a file names the recipe, not the code")
    arrays, plain = _state(policy)
    header = {
        "policy": {"name": recipe.name, "seed": list(recipe.seed), "options": recipe.options, **_origin(recipe.name)},
        "problem": {
            "covariance": _pack(problem.covariance, "covariance", arrays),
            "n_anomalies": problem.n_anomalies,
            "budget": _pack_constraint(problem.measurements, arrays),
            "shift": _pack(problem.shift, "shift", arrays),
            "shift_spread": _pack(problem.shift_spread, "shift_spread", arrays),
            "readout_noise": problem.readout_noise,
            "mean": _pack(problem.mean, "mean", arrays),
            "names": problem.names,
        },
        "state": plain,
    }
    write_archive(path, _KIND, _VERSION, header, arrays, plain=_plain)


def load_policy(path: str | PathLike[str]) -> Policy:
    """Read a policy that continues exactly where it was saved.

    One of your own must be registered, or declared by a package that is installed. No module is imported because a file
    names it: it names a policy, and the message about one that is not there says where it was when it was saved.
    """
    return read_archive(path, _KIND, _VERSION, _build)


def _build(header: dict[str, Any], arrays: dict[str, Array]) -> Policy:
    for part, keys in _KEYS.items():
        found = header[part] if part else header
        own = {"module"} & set(found) if part == "policy" else set()
        check_keys(found, keys | own, part or "header")
    _check_registered(header["policy"])
    saved, recipe, state = header["problem"], header["policy"], header["state"]
    capacity = sum(array.size for array in arrays.values())  # a bound for every size that the header claims
    operator = _unpack(saved["covariance"], arrays, capacity)
    if not isinstance(operator, Covariance) or operator.size > capacity:
        raise ValueError("its covariance is larger than what it holds values for")
    within = _unpack_constraint(saved["budget"], arrays)
    problem = Problem(
        operator,
        shift=ShiftPrior(_unpack(saved["shift"], arrays, capacity), _unpack(saved["shift_spread"], arrays, capacity)),
        n_anomalies=saved["n_anomalies"],
        readout_noise=saved["readout_noise"],
        measurements=within,
        mean=_unpack(saved["mean"], arrays, capacity),
        names=saved["names"],
    )
    policy = make_policy(recipe["name"], problem, seed=recipe["seed"], **recipe["options"])
    _check_state(_state(policy)[0], arrays, problem.size)
    _restore(policy, arrays, state)
    return policy


def _origin(name: str) -> dict[str, str]:
    """Of a policy that is not built in, where it comes from: for a message, never to be imported."""
    module = str(getattr(find_entry(name).compose, "__module__", ""))
    return {} if name in BUILT_IN or not _MODULE.fullmatch(module) else {"module": module}


def _check_registered(recipe: dict[str, Any]) -> None:
    """Say what is missing where a file holds a search of a policy that is not built in."""
    if "module" not in recipe or recipe["name"] in policy_names():
        return
    module = recipe["module"]
    if not isinstance(module, str) or not _MODULE.fullmatch(module):
        raise ValueError("its module is damaged")
    where = "the script or notebook that registers it" if module == "__main__" else f"{module!r}, if you trust it,"
    raise ValueError(
        f"its policy {recipe['name']!r:.80} is not registered here: import {where} and load the file again"
    )


# -- the state of a search -----------------------------------------------------------------------------


def _parts(policy: Policy) -> dict[str, Belief | Chooser]:
    """What has a state, by the name that its arrays begin with; of hds belief and chooser are one."""
    belief: dict[str, Belief | Chooser] = {"belief": policy._belief}
    return belief if id(policy._chooser) == id(policy._belief) else belief | {"chooser": policy._chooser}


def _state(policy: Policy) -> tuple[dict[str, Array], dict[str, Any]]:
    arrays = {f"{name}.{key}": a for name, part in _parts(policy).items() for key, a in part.state().items()}
    plain: dict[str, Any] = {"n_told": policy.n_told, "rng": policy._rng.bit_generator.state, "pair": None}
    if policy._choice is not None:
        arrays["choice"] = policy._choice.weights
        plain["pair"] = policy._choice.pair
    if policy._available is not None:
        arrays["available"] = policy._available.astype(float)
    return arrays | policy._pending.state(), plain


def _restore(policy: Policy, arrays: dict[str, Array], plain: dict[str, Any]) -> None:
    policy.n_told = as_count(plain["n_told"], "n_told", least=0)
    for name, part in _parts(policy).items():
        part.restore(part_of(arrays, name), policy.n_told)
    generator = policy._rng.bit_generator
    generator.state = _checked_generator(plain["rng"], generator.state)
    _restore_asked(policy, arrays, plain["pair"])


def _restore_asked(policy: Policy, arrays: dict[str, Array], pair: Any) -> None:
    if {"available", "pending"} & set(arrays):
        check_batches(policy.can, "what it holds")
    if "available" in arrays:
        mask = whole_numbers(arrays["available"], "available streams", most=1).astype(bool)
        if mask.all():
            raise ValueError("its available streams are damaged")
        policy._available = policy.problem.checked_mask(mask)
    if "pending" in arrays:
        rows = [_checked_choice(policy.problem, row.copy(), None).weights for row in arrays["pending"]]
        policy._pending.restore(rows, arrays["pending.ages"])
    if "choice" in arrays:
        choice = _checked_choice(policy.problem, arrays["choice"], pair)
        if policy._available is not None and choice.weights[~policy._available].any():
            raise ValueError("its measurement is of streams that are not available")
        policy._choice = choice
    elif pair is not None:
        raise ValueError("it has a pair without a measurement")


def _check_state(fresh: dict[str, Array], arrays: dict[str, Array], size: int) -> None:
    """The state must have the shapes of a fresh policy's, but for tables that gain rows, and be finite."""
    shapes = {name: array.shape for name, array in fresh.items()}
    shapes |= {name: (size,) for name in ("choice", "available") if name in arrays}
    if "pending" in arrays:
        shapes |= {"pending": (0, size), "pending.ages": (0, 3)}
    check_keys(arrays, set(shapes), "state")
    for name, shape in shapes.items():
        found = arrays[name]
        fits = found.ndim == 2 and found.shape[1:] == shape[1:] if len(shape) == 2 else found.shape == shape
        if not fits or found.dtype != np.float64 or not np.isfinite(found).all():
            raise ValueError(f"{name} is damaged")


def _checked_choice(problem: Problem, weights: Array, pair: Any) -> Choice:
    """A measurement that was asked for, if a policy could have asked for it."""
    weights = problem.checked_measurement(weights)
    if not problem.measurements.allows(weights):
        what = "exceeds the budget" if type(problem.measurements) is Budget else "is not allowed by its constraint"
        raise ValueError(f"its pending measurement {what}")
    if pair is None:
        return Choice(frozen(weights))
    if not isinstance(pair, list) or len(pair) != 2 or pair[0] == pair[1]:
        raise ValueError("its pair of streams is damaged")
    return Choice(frozen(weights), (_below(pair[0], problem.size), _below(pair[1], problem.size)))


def _checked_generator(saved: Any, fresh: Any) -> dict[str, Any]:
    """The state of a generator, if it is one that `fresh`, the state that the seed gives, can come to.

    Drawing changes `state` alone, and the half of a number that may be left over.
    """
    check_keys(saved, set(fresh), "generator")
    check_keys(saved["state"], set(fresh["state"]), "generator")
    if saved["bit_generator"] != fresh["bit_generator"] or saved["state"]["inc"] != fresh["state"]["inc"]:
        raise ValueError("its generator is not the one of its seed")
    _below(saved["state"]["state"], 1 << 128)
    _below(saved["has_uint32"], 2)
    _below(saved["uinteger"], 1 << 32)
    return dict(saved)


def _below(value: Any, limit: int) -> int:
    if type(value) is not int or not 0 <= value < limit:
        raise ValueError(f"it holds {value!r:.20} where a whole number below {limit:.3g} belongs")
    return value


# -- covariances and vectors ---------------------------------------------------------------------------


def _pack(value: Any, name: str, arrays: dict[str, Array]) -> Any:
    """Describe an operator by its parameters; arrays go to the archive and leave their name."""
    if isinstance(value, Covariance):
        if _OPERATORS.get(type(value).__name__) is not type(value):
            raise ValueError(f"a covariance of type {type(value).__name__} cannot be saved: use one of eccaht's")
        inner = {key: _pack(part, f"{name}.{key}", arrays) for key, part in value.parameters().items()}
        return {"operator": type(value).__name__, "parameters": inner}
    if isinstance(value, list):  # blocks, of which equal neighbours (the same object) are written once
        groups = [list(same) for _, same in groupby(value, key=id)]
        return {"runs": [[_pack(same[0], f"{name}.{k}", arrays), len(same)] for k, same in enumerate(groups)]}
    if isinstance(value, np.ndarray) and value.strides == (0,):  # one value repeated
        return float(value[0])
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"array": name}
    return value


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


def _plain(value: Any) -> Any:
    """Numbers and arrays among a policy's options, as JSON has them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise ValueError(f"an option of type {type(value).__name__} cannot be saved: use numbers and lists")


# -- constraints ---------------------------------------------------------------------------------------


def _pack_constraint(within: Constraint, arrays: dict[str, Array]) -> Any:
    """A number for the L1 budget, a list of parts for the others."""
    if type(within) is Budget:
        return within.limit
    if not isinstance(within, Rule) or any(_kind(part) is None for part in within.parts):
        raise ValueError(f"a policy under {within!r} cannot be saved: only those of eccaht's constraints can")
    packed = []
    for n, part in enumerate(within.parts):
        stored = part.stored() if isinstance(part, Rule) else {"limit": part.usual_norm}
        parameters = {key: _pack(value, f"measurements.{n}.{key}", arrays) for key, value in stored.items()}
        packed.append({"rule": _kind(part), "parameters": parameters})
    return packed


def _kind(part: Constraint) -> str | None:
    """The name of a constraint of eccaht; a subclass may have rules of its own."""
    if type(part) is Budget:
        return "Budget"
    name = type(part).__name__
    return name if _RULES.get(name) is type(part) else None


def _unpack_constraint(saved: Any, arrays: dict[str, Array]) -> Constraint:
    if not isinstance(saved, list):
        return Budget(as_number(saved, "budget"))
    if not 1 <= len(saved) <= _MOST:
        raise ValueError("its measurements are damaged")
    parts = [_unpacked(part, arrays) for part in saved]
    return parts[0] if len(parts) == 1 else Combined(*parts)


def _unpacked(saved: Any, arrays: dict[str, Array]) -> Constraint:
    check_keys(saved, {"rule", "parameters"}, "constraint")
    parameters = saved["parameters"]
    if not isinstance(parameters, dict):
        raise ValueError("its constraint is damaged")
    if saved["rule"] == "Budget":
        check_keys(parameters, {"limit"}, "budget")
        return Budget(as_number(parameters["limit"], "budget"))
    values = {key: _value(value, arrays) for key, value in parameters.items()}
    return _RULES[saved["rule"]].from_stored(values)


def _value(value: Any, arrays: dict[str, Array]) -> Any:
    if isinstance(value, dict):
        check_keys(value, {"array"}, "constraint")
        return arrays.pop(value["array"])
    if value is None or type(value) is int:
        return value
    return as_number(value, "a number of a constraint")
