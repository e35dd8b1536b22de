"""The generated parts of docs/reference, made from the code: `python -m docs.generate` writes them again.

A generated part stands between `<!-- generated: NAME -->` and `<!-- end -->`; what is around it is written by hand.
"""

from __future__ import annotations

import json
import re
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import cleandoc
from pathlib import Path
from types import ModuleType
from typing import Any, NotRequired, get_args, get_origin

import typer
from docs import documents, page_types
from docs.generate_words import entries, hints_of, json_type, schema_of, table, type_in_words
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

import eccaht
from eccaht.base.clock import show_duration
from eccaht.cli.main import _SETTINGS, COMMANDS, load
from eccaht.plants.watch.events import Event
from eccaht.service.api.app import make_app
from eccaht.service.parts import Seconds, SecondsOrZero
from eccaht.service.settings import PlantSettings, Settings
from eccaht.service.sources.settings import _BY_KIND
from eccaht.streams import CATALOGUE

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "reference"
INDEX = FOLDER / "python" / "index.md"
MODULES = {name: f"searches.md#{name}" for name in ("checks", "families", "measurements")} | {
    "covariance": "searches.md#covariances"
}
SCHEMAS: dict[str, Any] = {
    "identify": documents.AnswerDocument,
    "calibrate": documents.CalibrationDocument,
    "event": Event,
}
_MARKED = re.compile(r"(?<=<!-- generated: )([\w ]+)( -->\n)(.*?)(?=<!-- end -->)", re.DOTALL)
_OF_TIMES = [part for kind in (Seconds, SecondsOrZero) for part in kind.__metadata__]  # type: ignore[attr-defined]
_EXTRAS = {
    "tables": "reading and writing CSV and Parquet, time zones",
    "estimators": "estimating covariances from a history",
    "figures": "every picture",
    "cli": "the command `eccaht`",
    "experiments": "many runs in many processes",
    "all": "everything the command line does",
    "fast": "compiled loops: the same searches, faster",
    "live": "the service: `eccaht serve`",
    "dask": "`eccaht reproduce` on a cluster",
    "water": "`eccaht water`",
}


# -- commands ----------------------------------------------------------------------------------------------


def commands() -> str:
    """Every command with its options; those that three or more have alike stand once, at the end."""
    shown = {name: _command(name) for name in COMMANDS}
    every = Counter(option for _, _, options in shown.values() for option in options)
    shared = [option for option, times in every.items() if times >= 3]
    parts = [
        f"## {usage}\n\n{text}\n\n{entries([each for each in options if each not in shared])}{_also(options, shared)}\n"
        for usage, text, options in shown.values()
    ]
    return "".join(parts) + f"## Options of several commands\n\n{entries(shared)}"


def _also(options: Sequence[tuple[str, str]], shared: Sequence[tuple[str, str]]) -> str:
    names = ", ".join(name for name, meaning in options if (name, meaning) in shared)
    return f"- [also](#options-of-several-commands) {names}\n" if names else ""


def _command(name: str) -> tuple[str, str, list[tuple[str, str]]]:
    """How a command is used, what it does, and its options."""
    alone = typer.Typer(**_SETTINGS)
    alone.command(name)(load(name))
    command: Any = typer.main.get_command(alone)
    context = command.make_context(name, [], resilient_parsing=True)
    usage = [piece.strip("{}") for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
    records = [parameter.get_help_record(context) for parameter in command.params]
    options = [
        (f"`{_TYPE.sub('', option)}`", _plain(meaning))
        for option, meaning in filter(None, records)
        if "--help" not in option
    ]
    text = "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))
    return " ".join(["eccaht", name, *usage]), text, options


_TYPE = re.compile(r" <[^|>]*>")  # where a value has no name of its own
_DEFAULT = re.compile(r" ?\[default: ([^];]*)[^]]*\]")


def _plain(text: str) -> str:
    """A meaning with its default in brackets, without ranges."""
    text = re.sub(r" ?\[x[^]]*\]", "", " ".join(text.split()))
    return _DEFAULT.sub(r" [\1]", text).replace("<", "&lt;")


# -- settings ----------------------------------------------------------------------------------------------


def settings() -> str:
    """Every setting of the service but those of sources."""
    return entries([*_settings_of(Settings, "", leave=("plants",)), *_settings_of(PlantSettings, "plants.NAME.")])


def source(kind: str) -> str:
    """The settings of a kind of source; those of payloads, which brokers share, have a list of their own."""
    payloads = _payloads() if kind in _BROKERS else []
    rows = _settings_of(_BY_KIND[kind], "", leave=("kind",))
    return entries([row for row in rows if row not in payloads])


def payload() -> str:
    """What the settings of all brokers have alike."""
    return entries(_payloads())


_BROKERS = ("mqtt", "kafka")


def _payloads() -> list[tuple[str, str]]:
    one, other = ([*_settings_of(_BY_KIND[kind], "", leave=("kind",))] for kind in _BROKERS)
    return [row for row in one if row in other]


def _settings_of(model: type[BaseModel], prefix: str, leave: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    for field, info in model.model_fields.items():
        name = prefix + (info.alias or field)
        inner = next(_models(info.annotation), None)
        if inner is not None and field not in leave:
            yield from _settings_of(inner, f"{name}.NAME." if get_origin(info.annotation) is dict else f"{name}.")
        elif field not in leave:
            default = setting_default(info)
            kind = setting_type(info)
            given = "" if default == "none" else default
            if "`" in kind and given:
                given = f"default {given}"
            yield f"`{name}`{_in_brackets(kind, given)}", info.description or ""


def _in_brackets(kind: str, given: str = "") -> str:
    """A type, unless it is any text, and a default."""
    said = ", ".join(filter(None, ["" if kind == "text" else kind, given]))
    return f" ({said})" if said else ""


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    for kind in (annotation, *get_args(annotation)):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield kind


def setting_type(info: FieldInfo) -> str:
    """The type in words: a length of time is a number that is checked as one."""
    return "time" if _is_time(info) else type_in_words(info.annotation)


def _is_time(info: FieldInfo) -> bool:
    nested = [part for kind in get_args(info.annotation) for part in getattr(kind, "__metadata__", ())]
    return any(part in _OF_TIMES for part in (*info.metadata, *nested))


def setting_default(info: FieldInfo) -> str:
    value: Any = info.get_default(call_default_factory=True, validated_data={})
    if value is PydanticUndefined:
        return "needed"
    value = value.get_secret_value() if isinstance(value, SecretStr) else value
    if value is None or value in ("", [], {}):
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if _is_time(info):
        return f"`{show_duration(value)}`" if value else "`0s`"
    return f"`{value:,.0f}`".replace(",", "_") if isinstance(value, float) and value == int(value) else f"`{value}`"


# -- documents ---------------------------------------------------------------------------------------------


def document(name: str) -> str:
    """The keys of a document; those of another document that it has too are named by that."""
    shape, hints = getattr(documents, name), hints_of(getattr(documents, name))
    also = [base for base in (documents.IncidentDocument,) if {*hints_of(base)} < {*hints}]
    own = [key for key in hints if not any(key in hints_of(base) for base in also)]
    rows = [(f"`{key}`{_in_brackets(type_in_words(hints[key]))}", _meaning(hints[key])) for key in own]
    others = " and ".join(f"[{base.__name__}](#{base.__name__.lower()})" for base in also)
    end = f"\nAlso all keys of {others}.\n" if also else ""
    return f"### {name}\n\n{shape.__doc__}\n\n{entries(rows)}{end}"


def _meaning(kind: Any) -> str:
    inside = get_args(kind)
    return _meaning(inside[0]) if get_origin(kind) is NotRequired else str(inside[1])


def event() -> str:
    """The fields of an event, described by its docstring."""
    hints = hints_of(Event)
    meanings = {"event": "what happened, see below"} | described(cleandoc(Event.__doc__ or ""), hints)
    rows = [
        (f"`{name}`{_in_brackets(type_in_words(str if name == 'event' else hint))}", meanings.get(name, ""))
        for name, hint in hints.items()
    ]
    return entries(rows)


def described(text: str, names: Iterable[str]) -> dict[str, str]:
    """What a docstring such as `time: its start. a, b: its ends; c: more.` says of each of these names.

    >>> described("time: its start. a, b: its ends; c: more.", ["time", "a", "b", "c"])
    {'time': 'its start', 'a': 'its ends', 'b': 'its ends', 'c': 'more'}
    """
    name = rf"(?:{'|'.join(names)})"
    _, *parts = re.split(rf"(?:^|(?<=[.;]))\s*({name}(?:, {name})*): ", text, flags=re.MULTILINE)
    given = zip(parts[::2], parts[1::2], strict=True)
    return {each: said.strip().rstrip(".;") for group, said in given for each in group.split(", ")}


def schema(name: str) -> str:
    """The JSON schema of a document, as text."""
    made = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"eccaht {name}"}
    return json.dumps({**made, **schema_of(SCHEMAS[name])}, indent=1) + "\n"


# -- HTTP --------------------------------------------------------------------------------------------------


def openapi() -> dict[str, Any]:
    """The OpenAPI document of the service."""
    with tempfile.TemporaryDirectory() as home:
        app = make_app(Settings(store={"url": f"sqlite:///{home}/store.db"}))
        made: dict[str, Any] = app.openapi()
        app.state.store.close()
    return made


def http() -> str:
    """Every operation of the service, with what it takes."""
    described = openapi()
    shapes = described["components"]["schemas"]
    return "".join(
        f"- **`{method.upper()} {path}`** {_operation(operation, shapes)}".rstrip() + "\n"
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    )


def _operation(operation: Mapping[str, Any], shapes: Mapping[str, Any]) -> str:
    """Lines of a list, which wrap where a table would not: addresses are long."""
    query = [f"`{each['name']}`" for each in operation.get("parameters", ()) if each["in"] == "query"]
    taken = operation.get("requestBody", {}).get("content", {}).items()
    body = " or ".join(filter(None, (_body(kind, content.get("schema", {}), shapes) for kind, content in taken)))
    lines = [
        " ".join(operation.get("description", "").split()),
        f"Query: {', '.join(query)}." if query else "",
        f"Body: {body}." if body else "",
    ]
    return "\n  ".join(filter(None, lines))


def _body(kind: str, schema: Mapping[str, Any], shapes: Mapping[str, Any]) -> str:
    """What a request carries: the keys of its object, with what they mean."""
    if kind != "application/json" or "$ref" not in schema:
        return json_type(schema) if kind == "application/json" else f"`{kind}`"
    shape = shapes[schema["$ref"].rpartition("/")[2]]
    needed = shape.get("required", ())
    return ", ".join(
        f"`{key}`"
        + ("" if key in needed else " (optional)")
        + (f": {said}" if (said := part.get("description")) else "")
        for key, part in shape.get("properties", {}).items()
    )


# -- Python ------------------------------------------------------------------------------------------------


def names() -> str:
    """What comes with `import eccaht`: a table, and the docstrings of what no other page shows."""
    others = "".join(page.read_text(encoding="utf-8") for page in (FOLDER / "python").glob("*.md") if page != INDEX)
    public = {name: getattr(eccaht, name) for name in dir(eccaht)}
    rows = [(_linked(name, found), (found.__doc__ or "").strip().partition("\n")[0]) for name, found in public.items()]
    here = [name for name in public if name not in MODULES and f"::: eccaht.{name}\n" not in others]
    return entries(rows) + "".join(f"\n::: eccaht.{name}\n" for name in here)


def _linked(name: str, found: Any) -> str:
    return f"[`{name}`]({MODULES[name]})" if isinstance(found, ModuleType) else f"[`{name}`][eccaht.{name}]"


def policies() -> str:
    """Every algorithm by name."""
    return entries((f"`{name}`", f"{entry.summary} ({entry.source})") for name, entry in CATALOGUE.items())


def extras() -> str:
    """The extras of the package and what they install."""
    given = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    rows = [(f"`{extra}`", ", ".join(map(_package, given[extra])), used) for extra, used in _EXTRAS.items()]
    return table(("extra", "installs", "for"), *rows)


def _package(needed: str) -> str:
    return re.sub(r"eccaht\[(.+)\]", r"\1", needed.partition(";")[0].partition(">")[0].strip())


# -- pages -------------------------------------------------------------------------------------------------

PARTS: dict[str, Callable[..., str]] = {
    part.__name__: part
    for part in (commands, settings, source, payload, document, event, http, names, policies, extras)
}


def again(text: str) -> str:
    """A page with its generated parts made anew."""

    def made(found: re.Match[str]) -> str:
        name, *given = found[1].split()
        return f"{found[1]}{found[2]}\n{PARTS[name](*given).strip()}\n\n"

    return _MARKED.sub(made, text)


def pages() -> Iterator[tuple[Path, str]]:
    """Every file of the reference that has generated parts, and what it should hold."""
    for path in sorted(FOLDER.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        if _MARKED.search(text):
            yield path, again(text)
    yield page_types.PATH, page_types.page_types()
    for name in SCHEMAS:
        yield FOLDER / "schemas" / f"{name}.json", schema(name)


def main() -> None:
    """Write them."""
    for path, text in pages():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
