"""From the file that a session begins with to a policy."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from eccaht.base.files import regular_file
from eccaht.base.presentation.text import did_you_mean
from eccaht.cli.noise import read_covariance
from eccaht.cli.parsing import parse_shift
from eccaht.cli.session_lines import SessionProblem
from eccaht.plants import load_model
from eccaht.streams import DEFAULT_POLICY, Policy, Problem, families, make_policy, measurements

_LARGEST = 1 << 28  # bytes of a file with a matrix in it
_OF_POLICY = ("stopping", "alpha", "seed")
_FAMILIES = {
    name: made
    for name, made in vars(families).items()
    if inspect.isfunction(made) and made.__module__ == families.__name__ and not name.startswith("_")
}
_RULES = {
    name: kind
    for name, kind in vars(measurements).items()
    if inspect.isclass(kind)
    and issubclass(kind, measurements.Constraint)
    and not inspect.isabstract(kind)
    and kind is not measurements.Combined
}


def read_policy(path: Path) -> Policy:
    """The policy that a file describes; whatever is wrong with it is a ValueError of one line."""
    try:
        return _policy(_read(path), path.parent)
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}") from None
    except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"cannot use {path}: {error}") from None


def parse_object(text: str | bytes) -> dict[str, Any]:
    """A JSON object in which no key stands twice."""
    try:
        found = json.loads(text, object_pairs_hook=_once)
    except (RecursionError, UnicodeDecodeError):
        raise ValueError("it is no JSON object") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON: {error.msg} at character {error.pos + 1}") from None
    if not isinstance(found, dict):
        raise ValueError(f"it must be a JSON object in braces, not a {type(found).__name__}")
    return found


def check_names(found: Iterable[str], needed: Iterable[str], known: Iterable[str], what: str) -> None:
    """Refuse keys that are not known and the lack of those that are needed."""
    known, found = sorted(known), list(found)
    for name in found:
        if name not in known:
            near = did_you_mean(name, known) or f": it takes {', '.join(known)}"
            raise ValueError(f"{what} has no {name[:40]!r}{near}")
    for name in sorted(needed):
        if name not in found:
            raise ValueError(f"{what} lacks {name!r}")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return values


def _read(path: Path) -> dict[str, Any]:
    with regular_file(path, "file") as file:
        text = file.read(_LARGEST + 1)
    if len(text) > _LARGEST:
        raise ValueError("it is larger than any problem: put its matrix into a .npy file")
    found = parse_object(text)
    keys = SessionProblem.__required_keys__, SessionProblem.__required_keys__ | SessionProblem.__optional_keys__
    check_names(found, *keys, "a problem")
    return found


def _policy(given: dict[str, Any], beside: Path) -> Policy:
    problem = _problem(given, beside)
    options = given.get("options", {})
    if not isinstance(options, dict):
        raise ValueError("options must be an object")
    if twice := sorted({*options} & {*_OF_POLICY, "problem", "name"}):
        raise ValueError(f"{twice[0]!r} stands beside the options, not among them")
    chosen = {name: given[name] for name in _OF_POLICY if name in given}
    return make_policy(given.get("policy", DEFAULT_POLICY), problem, **chosen, **options)


def _problem(given: dict[str, Any], beside: Path) -> Problem:
    arguments: dict[str, Any] = {
        key: given[key] for key in ("budget", "mean", "names", "readout_noise") if key in given
    }
    if "measurements" in given:
        arguments["measurements"] = _constraint(given["measurements"])
    noise, number = given["covariance"], given["anomalies"]
    if not isinstance(given.get("names", []), list):
        raise ValueError("names must be a list of texts")
    if isinstance(noise, dict) and "model" in noise:
        check_names(noise, ["model"], ["model"], "covariance")
        if twice := sorted({"mean", "names"} & {*given}):
            raise ValueError(f"the model has {twice[0]} already: leave it out")
        model = load_model(beside / _text(noise["model"], "model"))
        arguments |= {"mean": model.mean, "names": model.names}
        covariance: Any = model.covariance
    else:
        covariance = _covariance(noise, beside)
    sizes = tuple(number) if isinstance(number, list) else number
    return Problem(covariance, shift=_shift(given["shift"]), n_anomalies=sizes, **arguments)


def _covariance(given: Any, beside: Path) -> Any:
    if isinstance(given, str):
        return read_covariance(beside / given)
    if not isinstance(given, dict):
        return given  # a matrix, which Problem checks
    parameters = dict(given)
    name = _text(parameters.pop("family", None), "family").replace("-", "_")
    if name not in _FAMILIES:
        raise ValueError(f"there is no family {name!r}: known are {', '.join(sorted(_FAMILIES))}")
    if "streams" in parameters:
        parameters["K"] = parameters.pop("streams")
    if isinstance(parameters.get("shape"), list):
        parameters["shape"] = tuple(parameters["shape"])
    return _called(_FAMILIES[name], parameters, f"the family {name}", K="streams")


def _constraint(given: Any) -> measurements.Constraint:
    if not isinstance(given, list) or not given or not all(isinstance(part, dict) for part in given):
        raise ValueError('measurements must be a list of {"rule": NAME, ...}')
    parts = []
    for part in given:
        parameters = dict(part)
        name = _text(parameters.pop("rule", None), "rule")
        if name not in _RULES:
            raise ValueError(f"there is no rule {name!r}: known are {', '.join(sorted(_RULES))}")
        parts.append(_called(_RULES[name], parameters, name))
    return parts[0] if len(parts) == 1 else measurements.Combined(*parts)


def _called(make: Any, parameters: dict[str, Any], what: str, **shown: str) -> Any:
    """Call it with these parameters after a check of their names, which messages call as the file does."""
    taken = inspect.signature(make).parameters
    needed = [name for name, each in taken.items() if each.default is inspect.Parameter.empty]
    own = {there: here for here, there in shown.items()}
    found, lacking, known = ([shown.get(name, name) for name in names] for names in (parameters, needed, taken))
    check_names(found, lacking, known, what)
    return make(**{own.get(name, name): value for name, value in parameters.items()})


def _shift(given: Any) -> Any:
    """Numbers as they are, texts such as unknown:3 read."""
    if isinstance(given, str):
        return parse_shift(given)
    if isinstance(given, list):
        return [_shift(each) for each in given]
    return {name: _shift(each) for name, each in given.items()} if isinstance(given, dict) else given


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{what} must be a text, not {value!r:.40}")
    return value
