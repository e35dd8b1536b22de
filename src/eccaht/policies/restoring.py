"""Checks of what a file says of a policy beyond its belief: the pending measurement and the generator."""

from __future__ import annotations

from typing import Any

from eccaht.archive import check_keys
from eccaht.arrays import Array, frozen
from eccaht.policies.parts import Choice
from eccaht.problem import Problem


def checked_choice(problem: Problem, weights: Array, pair: Any) -> Choice:
    """A measurement that was asked for, if a policy could have asked for it."""
    weights = problem.checked_measurement(weights)
    if not problem.measurements.allows(weights):
        raise ValueError("its pending measurement exceeds the budget")
    if pair is None:
        return Choice(frozen(weights))
    if not isinstance(pair, list) or len(pair) != 2 or pair[0] == pair[1]:
        raise ValueError("its pair of streams is damaged")
    return Choice(frozen(weights), (_below(pair[0], problem.size), _below(pair[1], problem.size)))


def checked_generator(told: Any, fresh: Any) -> dict[str, Any]:
    """The state of a generator, if it is one that `fresh`, the state that the seed gives, can come to.

    Drawing changes `state` alone, and the half of a number that may be left over.
    """
    check_keys(told, set(fresh), "generator")
    check_keys(told["state"], set(fresh["state"]), "generator")
    if told["bit_generator"] != fresh["bit_generator"] or told["state"]["inc"] != fresh["state"]["inc"]:
        raise ValueError("its generator is not the one of its seed")
    _below(told["state"]["state"], 1 << 128)
    _below(told["has_uint32"], 2)
    _below(told["uinteger"], 1 << 32)
    return dict(told)


def _below(value: Any, limit: int) -> int:
    if type(value) is not int or not 0 <= value < limit:
        raise ValueError(f"it holds {value!r:.20} where a whole number below {limit:.3g} belongs")
    return value
