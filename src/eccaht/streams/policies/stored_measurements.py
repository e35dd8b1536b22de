"""Constraints in the files of policies: names and numbers, rebuilt by the constructors that check them."""

from __future__ import annotations

from typing import Any

import numpy as np

from eccaht.base.archive import check_keys
from eccaht.base.arrays import Array, as_number
from eccaht.streams import measurements
from eccaht.streams.measurements import Budget, Combined, Constraint, Rule

_MOST = 64  # parts of a constraint
_RULES = {
    name: kind
    for name, kind in vars(measurements).items()
    if isinstance(kind, type) and issubclass(kind, Rule) and kind not in (Rule, Combined)
}


def pack_constraint(within: Constraint, arrays: dict[str, Array]) -> Any:
    """A number for the L1 budget, a list of parts for the others; arrays go to the archive and leave their name."""
    if type(within) is Budget:
        return within.limit
    if not isinstance(within, Rule) or any(_kind(part) is None for part in within.parts):
        raise ValueError(f"a policy under {within!r} cannot be saved: only those of eccaht's constraints can")
    return [_packed(part, f"measurements.{n}", arrays) for n, part in enumerate(within.parts)]


def _kind(part: Constraint) -> str | None:
    """The name of a constraint of eccaht; a subclass may have rules of its own."""
    if type(part) is Budget:
        return "Budget"
    name = type(part).__name__
    return name if _RULES.get(name) is type(part) else None


def _packed(part: Constraint, name: str, arrays: dict[str, Array]) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    stored = part.stored() if isinstance(part, Rule) else {"limit": part.usual_norm}
    for key, value in stored.items():
        if isinstance(value, np.ndarray):
            arrays[f"{name}.{key}"] = value
            parameters[key] = {"array": f"{name}.{key}"}
        else:
            parameters[key] = value
    return {"rule": _kind(part), "parameters": parameters}


def unpack_constraint(saved: Any, arrays: dict[str, Array]) -> Constraint:
    """Build a constraint again; every array is taken out and belongs to one place only."""
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
