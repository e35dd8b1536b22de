"""The types of the page's scripts, made of the shapes that the service answers with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic.json_schema import models_json_schema

from eccaht.service.api import shapes

PATH = Path(shapes.__file__).parents[1] / "page" / "types.js"
_ANSWERED = (
    *(shapes.PlantRow, shapes.PlantShape, shapes.SensorRow, shapes.EvidenceShape, shapes.Series, shapes.Correlation),
    *(shapes.IncidentRow, shapes.IncidentShape, shapes.Trends),
)
_HEAD = """// @ts-check
/**
 * What the service answers, made of its shapes by `python -m docs.generate`. Times are ISO 8601 on the clock of the
 * plant.
 *
 * @typedef {Plant["state"]} PlantState
 * @typedef {Incident["severity"]} Severity
 * @typedef {Plant["still"]} Still
 * @typedef {(number | null)[]} Curve
 * @typedef {{plant: string, time: string, evidence: number | null, state: Evidence["state"][number]}} WindowMessage
 * @typedef {{plant: string, document: EventDocument}} EventMessage
 * @typedef {{name: string, scopes: string[], by: string, csrf: string | null}} Me
"""


def page_types() -> str:
    """The content of `types.js`."""
    _, schema = models_json_schema([(shape, "serialization") for shape in _ANSWERED], ref_template="{model}")
    typedefs = (line for name, shape in schema["$defs"].items() for line in _typedef(name, shape))
    return f"{_HEAD}{''.join(typedefs)} */\nexport {{}};\n"


def _typedef(name: str, shape: Mapping[str, Any]) -> Iterator[str]:
    yield f" *\n * @typedef {{object}} {_short(name)}\n"
    for key, kind in shape.get("properties", {}).items():
        yield f" * @property {{{_type(kind)}}} {key}\n"


def _short(name: str) -> str:
    """What scripts call a shape.

    >>> _short("PlantShape"), _short("FaultNow"), _short("SensorRow"), _short("PlantRow")
    ('Plant', 'Fault', 'Sensor', 'PlantRow')
    """
    if name in ("PlantRow", "IncidentRow"):
        return name
    return next((name.removesuffix(end) for end in ("Shape", "Now", "Row") if name.endswith(end)), name)


def _type(kind: Mapping[str, Any]) -> str:
    if "$ref" in kind:
        return _short(kind["$ref"])
    if "enum" in kind or "const" in kind:
        return " | ".join(f'"{each}"' for each in kind.get("enum", [kind.get("const")]))
    if "anyOf" in kind:
        return " | ".join(map(_type, kind["anyOf"]))
    if "prefixItems" in kind:
        return f"[{', '.join(map(_type, kind['prefixItems']))}]"
    if kind.get("type") == "array":
        inside = _type(kind.get("items", {}))
        return f"({inside})[]" if "|" in inside else f"{inside}[]"
    if kind.get("type") == "object":
        further = kind.get("additionalProperties")
        return f"Record<string, {_type(further) if isinstance(further, dict) else 'any'}>"
    return {"integer": "number"}.get(kind.get("type", "any"), kind.get("type", "any"))
