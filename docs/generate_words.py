"""Types in words and as JSON schemas, and tables of Markdown, for docs/generate.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

_OF_JSON = {str: "string", float: "number", int: "integer", bool: "boolean", NoneType: "null"}
_PRIMITIVES = {"str": "text", "float": "number", "int": "whole number", "bool": "true or false", "Path": "file"}


def table(*rows: Iterable[str]) -> str:
    """A table of Markdown; the first row is its head."""
    head, *rest = [[" ".join(cell.replace("|", r"\|").split()) for cell in row] for row in rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, ["---"] * len(head), *rest])


def entries(rows: Iterable[tuple[str, str]]) -> str:
    """A list of names and what they mean."""
    return "".join(f"- {name}: {meaning}\n" if meaning else f"- {name}\n" for name, meaning in rows)


def hints_of(shape: Any) -> dict[str, Any]:
    return get_type_hints(shape, include_extras=True)


def type_in_words(kind: Any) -> str:
    """A type as a reader of JSON and TOML knows it."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Annotated, NotRequired):
        return type_in_words(inside[0])
    if origin is Literal:
        return ", ".join(f"`{each}`" for each in inside)
    if origin in (list, tuple, set, frozenset):
        return f"list of {type_in_words(inside[0])}"
    if origin is dict:
        return f"{type_in_words(inside[1])} by name" if inside[1] is not Any else "object"
    if origin in (Union, UnionType):
        return " or ".join(type_in_words(each) for each in inside if each is not NoneType)
    if isinstance(kind, type) and kind.__name__.endswith("Document"):
        return f"[{kind.__name__}](#{kind.__name__.lower()})"
    if is_typeddict(kind):
        return " and ".join(f"`{key}`" for key in hints_of(kind))
    name = getattr(kind, "__name__", str(kind))
    return _PRIMITIVES.get(name, "any" if kind is Any else "text")


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON schema of a type."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Annotated, NotRequired):
        return schema_of(inside[0]) | ({"description": inside[1]} if origin is Annotated else {})
    if origin is Literal:
        return {"enum": [*inside]}
    if origin in (list, tuple):
        return {"type": "array", "items": schema_of(inside[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(inside[1])}
    if origin in (Union, UnionType):
        return {"anyOf": [schema_of(each) for each in inside]}
    if kind in _OF_JSON:
        return {"type": _OF_JSON[kind]}
    if kind is Any:
        return {}
    hints = hints_of(kind)
    needed = [name for name, each in hints.items() if get_origin(each) is not NotRequired]
    parts = {name: schema_of(each) for name, each in hints.items()}
    return {"type": "object", "properties": parts, "required": needed, "additionalProperties": False}


def json_type(kind: Mapping[str, Any]) -> str:
    """A type of a JSON schema in words."""
    if "$ref" in kind:
        name = kind["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in kind:
        return " or ".join(dict.fromkeys(json_type(each) for each in kind["anyOf"] if each.get("type") != "null"))
    if "enum" in kind:
        return ", ".join(f"`{each}`" for each in kind["enum"])
    words = {"string": "text", "integer": "whole number", "boolean": "true or false", "array": "list"}
    named = words.get(kind.get("type", ""), kind.get("type", "any"))
    return f"list of {json_type(kind['items'])}" if named == "list" and kind.get("items") else named
