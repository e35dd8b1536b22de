"""Lays out our docstrings for the site: examples as code, described arguments as lists, records with their fields."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import griffe

_NAMES = r"(?:[a-z_]+)(?:, [a-z_]+)*"
_FIRST = re.compile(rf"^({_NAMES}): (?=\S)")
_WITHIN = re.compile(rf"(?<=[.;]) ({_NAMES}): (?=\S)")  # begins an item only if these are names of the object
_COMMENT = re.compile(r"#\s+(?!noqa|type:)(.+)$")


def laid_out(text: str, known: Collection[str] = (), fields: Mapping[str, str] | None = None) -> str:
    """Return Markdown in which doctests are fenced and `name: what it is` are items of a list.

    known: arguments and fields, at which an item may begin within a line.
    fields: what is said of those which the text does not describe; they are added to the list.
    """
    lines: list[str] = []
    described: set[str] = set()
    last = 0  # where further items go: after the last one, or before the first example
    example = item = False
    for line in _pieces(text, known):
        if line.startswith(">>>") and not example:
            last = last or len(lines)
            lines += ["", "```pycon"]
            example, item = True, False
        elif example and not line.strip():
            lines.append("```")
            example = False
        if not example and (found := _FIRST.match(line)):
            lines += [] if item else [""]
            described.update(found[1].split(", "))
            line, item = f"- **{found[1]}**: {line[found.end() :]}", True
        elif item and line.strip():
            line = "  " + line.strip()
        else:
            item = item and example
        lines.append(line)
        last = len(lines) if item else last
    lines += ["```"] if example else []
    more = [f"- **{name}**: {said}" for name, said in (fields or {}).items() if name not in described]
    last = last or len(lines)
    blank = [] if described else [""]
    return "\n".join([*lines[:last], *blank, *more, *lines[last:]] if more else lines)


def _pieces(text: str, known: Collection[str]) -> Iterator[str]:
    """The lines, cut where a described name begins within one."""
    for line in text.splitlines():
        start = 0
        if not line.startswith((">>>", "...")):
            for found in _WITHIN.finditer(line):
                if set(found[1].split(", ")) <= set(known):
                    yield re.sub(";$", ".", line[start : found.start()])
                    start = found.start() + 1
        yield line[start:]


def _is_record(cls: griffe.Class) -> bool:
    """Is it a NamedTuple or a dataclass?"""
    return "dataclass" in cls.labels or _is_named_tuple(cls)


def _is_named_tuple(cls: griffe.Class) -> bool:
    return any(str(base).rpartition(".")[2] == "NamedTuple" for base in cls.bases)


def _fields(cls: griffe.Class) -> dict[str, griffe.Attribute]:
    """The public annotated attributes, in order."""
    attributes = {name: found for name, found in cls.members.items() if isinstance(found, griffe.Attribute)}
    return {
        name: found
        for name, found in attributes.items()
        if not name.startswith("_") and found.annotation is not None and "property" not in found.labels
    }


def _comments(cls: griffe.Class) -> dict[str, str]:
    """What the comment beside each field says."""
    found = {name: _COMMENT.search(field.source) for name, field in _fields(cls).items()}
    return {name: re.sub(r"(?<![.?])$", ".", match[1]) for name, match in found.items() if match}


class Layout(griffe.Extension):
    """Applied to every docstring."""

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """Give a NamedTuple the signature that its fields stand for."""
        if _is_named_tuple(cls) and "__init__" not in cls.members:
            kind = griffe.ParameterKind.positional_or_keyword
            given = [
                griffe.Parameter(name, annotation=field.annotation, kind=kind, default=field.value)
                for name, field in _fields(cls).items()
            ]
            made = griffe.Function(
                "__init__", parameters=griffe.Parameters(griffe.Parameter("self", kind=kind), *given)
            )
            made.parent = cls
            cls.set_member("__init__", made)

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of an object."""
        if obj.docstring is None:
            return
        known: set[str] = set()
        fields: dict[str, str] = {}
        if isinstance(obj, griffe.Function):
            known = {parameter.name for parameter in obj.parameters}
        elif isinstance(obj, griffe.Class):
            made = obj.members.get("__init__")
            given = made.parameters if isinstance(made, griffe.Function) else ()
            known = {*obj.members, *(parameter.name for parameter in given)}
            fields = _comments(obj) if _is_record(obj) else {}
        obj.docstring.value = laid_out(obj.docstring.value, known, fields)
