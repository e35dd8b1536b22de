"""From the file that a session begins with to a policy."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eccaht.base.files import regular_file, strict_json
from eccaht.base.presentation.text import did_you_mean
from eccaht.cli.problems import parse_shift, read_covariance
from eccaht.plants import load_model
from eccaht.streams import DEFAULT_POLICY, Covariance, Policy, Problem, families, make_policy, measurements

_OF_PROBLEM = ("budget", "mean", "names", "readout_noise")
_OF_POLICY = ("stopping", "alpha", "seed")
_NEEDED = ("covariance", "shift", "anomalies")
_KNOWN = (*_NEEDED, "measurements", *_OF_PROBLEM, "policy", "options", *_OF_POLICY)
_FAMILIES = {
    name: made
    for name, made in inspect.getmembers(families, inspect.isfunction)
    if made.__module__ == families.__name__ and not name.startswith("_")
}
_RULES = {
    name: kind
    for name, kind in inspect.getmembers(measurements, inspect.isclass)
    if issubclass(kind, measurements.Constraint) and not inspect.isabstract(kind) and kind is not measurements.Combined
}


def read_policy(path: Path) -> Policy:
    """The policy that a file describes; whatever is wrong with it is a ValueError of one line."""
    try:
        with regular_file(path, "file") as file:
            given = parse_object(file.read())
        _check_keys(given, _NEEDED, _KNOWN, "a problem")
        problem = _problem(given, path.parent)
        options = given.get("options", {})
        if not isinstance(options, dict) or {*options} & {*_OF_POLICY, "problem", "name"}:
            raise ValueError(f"options must be an object; {', '.join(_OF_POLICY)} stand beside the options")
        chosen = {name: given[name] for name in _OF_POLICY if name in given}
        return make_policy(given.get("policy", DEFAULT_POLICY), problem, **chosen, **options)
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}") from None
    except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"cannot use {path}: {error}") from None


def parse_object(text: bytes) -> dict[str, Any]:
    """A JSON object in which no key stands twice and every number is finite."""
    try:
        found = strict_json(text)
    except (RecursionError, UnicodeDecodeError):
        raise ValueError("it is no JSON object") from None
    if not isinstance(found, dict):
        raise ValueError(f"it must be a JSON object in braces, not a {type(found).__name__}")
    return found


def call_by_name(function: Any, given: dict[str, Any], what: str, **called: str) -> Any:
    """Call it with the keys of an object; called: parameters that have another name there."""
    parameters = {
        called.get(name, name): parameter for name, parameter in inspect.signature(function).parameters.items()
    }
    needed = [name for name, parameter in parameters.items() if parameter.default is inspect.Parameter.empty]
    _check_keys(given, needed, [*parameters], what)
    return function(**{parameters[name].name: value for name, value in given.items()})


def _check_keys(given: dict[str, Any], needed: Sequence[str], known: Sequence[str], what: str) -> None:
    for name in given:
        if name not in known:
            near = did_you_mean(name, known) or f": it takes {', '.join(known)}"
            raise ValueError(f"{what} has no {name[:40]!r}{near}")
    for name in needed:
        if name not in given:
            raise ValueError(f"{what} lacks {name!r}")


def _problem(given: dict[str, Any], beside: Path) -> Problem:
    arguments: dict[str, Any] = {name: given[name] for name in _OF_PROBLEM if name in given}
    if "measurements" in given:
        arguments["measurements"] = _constraint(given["measurements"])
    if not isinstance(given.get("names", []), list):
        raise ValueError("names must be a list of texts")
    noise, number = given["covariance"], given["anomalies"]
    if isinstance(noise, dict) and "model" in noise:
        if twice := sorted({"mean", "names"} & {*given}):
            raise ValueError(f"the model has {twice[0]} already: leave it out")
        _check_keys(noise, ["model"], ["model"], "covariance")
        model = load_model(beside / str(noise["model"]))
        noise, arguments["mean"], arguments["names"] = model.covariance, model.mean, model.names
    elif isinstance(noise, dict):
        noise = _family(dict(noise))
    elif isinstance(noise, str):
        noise = read_covariance(beside / noise)
    sizes = tuple(number) if isinstance(number, list) else number
    return Problem(noise, shift=_shift(given["shift"]), n_anomalies=sizes, **arguments)


def _family(given: dict[str, Any]) -> Covariance:
    name = str(given.pop("family", None)).replace("-", "_")
    if name not in _FAMILIES:
        raise ValueError(f"there is no family {name!r}: known are {', '.join(_FAMILIES)}")
    if isinstance(given.get("shape"), list):
        given["shape"] = tuple(given["shape"])
    made: Covariance = call_by_name(_FAMILIES[name], given, f"the family {name}", K="streams")
    return made


def _constraint(given: Any) -> measurements.Constraint:
    if not isinstance(given, list) or not given or not all(isinstance(part, dict) for part in given):
        raise ValueError('measurements must be a list of {"rule": NAME, ...}')
    parts: list[measurements.Constraint] = []
    for part in map(dict, given):
        name = str(part.pop("rule", None))
        if name not in _RULES:
            raise ValueError(f"there is no rule {name!r}: known are {', '.join(_RULES)}")
        parts.append(call_by_name(_RULES[name], part, name))
    return parts[0] if len(parts) == 1 else measurements.Combined(*parts)


def _shift(given: Any) -> Any:
    """Numbers as they are, texts such as unknown:3 read."""
    if isinstance(given, str):
        return parse_shift(given)
    if isinstance(given, list):
        return [_shift(each) for each in given]
    return {name: _shift(each) for name, each in given.items()} if isinstance(given, dict) else given
