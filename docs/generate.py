"""The generated parts of docs/reference, made from the code: `python -m docs.generate` writes them again.

A generated part stands between `<!-- generated: NAME -->` and `<!-- end -->`; what is around it is written by hand.
"""

from __future__ import annotations

import json
import re
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import cleandoc
from pathlib import Path
from types import ModuleType
from typing import Any, NotRequired, get_args, get_origin

import typer
from docs.generate_words import hints_of, json_type, schema_of, table, type_in_words
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

import eccaht
from eccaht.base.clock import show_duration
from eccaht.cli.main import _SETTINGS, COMMANDS, load
from eccaht.cli.session_lines import SessionAnswer, SessionProblem, SessionRequest
from eccaht.plants import documents
from eccaht.plants.watch.events import Event
from eccaht.service.api.app import make_app
from eccaht.service.parts import Seconds, SecondsOrZero
from eccaht.service.settings import PlantSettings, Settings
from eccaht.service.sources.settings import _BY_KIND
from eccaht.streams import CATALOGUE

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "reference"
INDEX = FOLDER / "python" / "index.md"
MODULES = {name: f"{name}.md" for name in ("checks", "covariance", "measurements", "plot")} | {
    "families": "covariance.md#families"
}
SCHEMAS: dict[str, Any] = {
    "identify": documents.AnswerDocument,
    "calibrate": documents.CalibrationDocument,
    "event": Event,
}
SCHEMAS |= {"session-problem": SessionProblem, "session-request": SessionRequest, "session-answer": SessionAnswer}
_MARKED = re.compile(r"(?<=<!-- generated: )([\w ]+)( -->\n)(.*?)(?=<!-- end -->)", re.DOTALL)
_OF_TIMES = [part for kind in (Seconds, SecondsOrZero) for part in kind.__metadata__]  # type: ignore[attr-defined]
_EXTRAS = {
    "tables": "reading and writing CSV and Parquet, time zones",
    "estimators": "estimating covariances from a history",
    "figures": "every picture",
    "cli": "the command `eccaht`",
    "experiments": "many runs in many processes",
    "all": "everything the command line does",
    "live": "the service: `eccaht serve`",
    "dask": "`eccaht reproduce` and `eccaht watch --fleet` on a cluster",
    "water": "`eccaht water`",
    "gym": "the search as an environment of gymnasium",
}


# -- commands ----------------------------------------------------------------------------------------------


def commands() -> str:
    return "".join(_command(name) for name in COMMANDS)


def _command(name: str) -> str:
    alone = typer.Typer(**_SETTINGS)
    alone.command(name)(load(name))
    command: Any = typer.main.get_command(alone)
    context = command.make_context(name, [], resilient_parsing=True)
    usage = " ".join(["eccaht", name, *(piece for piece in command.collect_usage_pieces(context))])
    records = [parameter.get_help_record(context) for parameter in command.params]
    rows = [(f"`{shown}`", _plain(meaning)) for shown, meaning in filter(None, records) if "--help" not in shown]
    text = "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))
    return f"## eccaht {name}\n\n{text}\n\n```text\n{usage}\n```\n\n{table(('option', 'meaning'), *rows)}\n"


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("<", r"\<")


# -- settings ----------------------------------------------------------------------------------------------


def settings() -> str:
    """Every setting of the service but those of sources."""
    rows = [*_settings_of(Settings, "", leave=("plants",)), *_settings_of(PlantSettings, "plants.NAME.")]
    return table(("setting", "type", "default", "meaning"), *rows)


def source(kind: str) -> str:
    """The settings of a kind of source."""
    rows = _settings_of(_BY_KIND[kind], "", leave=("kind",))
    return table((f'`kind = "{kind}"`', "type", "default", "meaning"), *rows)


def _settings_of(model: type[BaseModel], prefix: str, leave: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for field, info in model.model_fields.items():
        name = prefix + (info.alias or field)
        inner = next(_models(info.annotation), None)
        if inner is not None and field not in leave:
            yield from _settings_of(inner, f"{name}.NAME." if get_origin(info.annotation) is dict else f"{name}.")
        elif field not in leave:
            yield f"`{name}`", setting_type(info), setting_default(info), info.description or ""


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
    also = [base for base in (documents.IncidentDocument, documents.SearchDocument) if {*hints_of(base)} < {*hints}]
    own = [key for key in hints if not any(key in hints_of(base) for base in also)]
    rows = [(f"`{key}`", type_in_words(hints[key]), _meaning(hints[key])) for key in own]
    others = " and ".join(f"[{base.__name__}](#{base.__name__.lower()})" for base in also)
    end = f"\nAlso all keys of {others}.\n" if also else ""
    return f"### {name}\n\n{shape.__doc__}\n\n{table(('key', 'type', 'meaning'), *rows)}{end}"


def _meaning(kind: Any) -> str:
    inside = get_args(kind)
    return _meaning(inside[0]) if get_origin(kind) is NotRequired else str(inside[1])


def event() -> str:
    """The fields of an event, described by its docstring."""
    hints = hints_of(Event)
    meanings = {"event": "what happened, see below"} | described(cleandoc(Event.__doc__ or ""), hints)
    rows = [
        (f"`{name}`", type_in_words(str if name == "event" else hint), meanings.get(name, ""))
        for name, hint in hints.items()
    ]
    return table(("field", "type", "meaning"), *rows)


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
    """Every operation of the service, and the objects that it takes and gives."""
    described = openapi()
    operations = [
        f"- **`{method.upper()} {path}`** {_operation(operation)}\n"
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]
    objects = [_object(name, part) for name, part in sorted(described["components"]["schemas"].items())]
    return "## Requests\n\n" + "".join(operations) + "\n## Objects\n\n" + "\n".join(objects)


def _operation(operation: Mapping[str, Any]) -> str:
    """Lines of a list, which wrap where a table would not: addresses are long."""
    query = [f"`{each['name']}`" for each in operation.get("parameters", ()) if each["in"] == "query"]
    good: dict[str, Any] = next((answer for code, answer in operation["responses"].items() if code[0] == "2"), {})
    body, answer = (_contents(part) for part in (operation.get("requestBody", {}), good))
    lines = [
        " ".join(operation.get("description", "").split()),
        f"Query: {', '.join(query)}." if query else "",
        f"Body: {body}." if body else "",
        f"Answer: {answer}." if answer else "",
    ]
    return "\n  ".join(filter(None, lines))


def _contents(part: Mapping[str, Any]) -> str:
    return " or ".join(dict.fromkeys(map(_content, part.get("content", {}).items())))


def _content(item: tuple[str, Any]) -> str:
    kind, content = item
    return json_type(content.get("schema", {})) if kind == "application/json" else f"`{kind}`"


def _object(name: str, part: Mapping[str, Any]) -> str:
    needed = part.get("required", ())
    rows = [
        (f"`{key}`", json_type(kind), "yes" if key in needed else "no", kind.get("description", ""))
        for key, kind in part.get("properties", {}).items()
    ]
    text = " ".join(part.get("description", "").split())
    return f"### {name}\n\n{text}\n\n" + (table(("key", "type", "needed", "meaning"), *rows) if rows else "")


# -- Python ------------------------------------------------------------------------------------------------


def names() -> str:
    """What comes with `import eccaht`: a table, and the docstrings of what no other page shows."""
    others = "".join(page.read_text(encoding="utf-8") for page in (FOLDER / "python").glob("*.md") if page != INDEX)
    public = {name: getattr(eccaht, name) for name in eccaht.__all__}
    rows = [(_linked(name, found), (found.__doc__ or "").strip().partition("\n")[0]) for name, found in public.items()]
    here = [name for name in public if name not in MODULES and f"::: eccaht.{name}\n" not in others]
    return table(("name", "what it is"), *rows) + "".join(f"\n::: eccaht.{name}\n" for name in here)


def _linked(name: str, found: Any) -> str:
    return f"[`{name}`]({MODULES[name]})" if isinstance(found, ModuleType) else f"[`{name}`][eccaht.{name}]"


def policies() -> str:
    """Every algorithm by name."""
    rows = [(f"`{name}`", entry.summary, entry.source) for name, entry in CATALOGUE.items()]
    return table(("name", "what it does", "source"), *rows)


def extras() -> str:
    """The extras of the package and what they install."""
    given = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    rows = [(f"`{extra}`", ", ".join(map(_package, given[extra])), used) for extra, used in _EXTRAS.items()]
    return table(("extra", "installs", "for"), *rows)


def _package(needed: str) -> str:
    return re.sub(r"eccaht\[(.+)\]", r"\1", needed.partition(";")[0].partition(">")[0].strip())


# -- pages -------------------------------------------------------------------------------------------------

PARTS: dict[str, Callable[..., str]] = {
    part.__name__: part for part in (commands, settings, source, document, event, http, names, policies, extras)
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
    for name in SCHEMAS:
        yield FOLDER / "schemas" / f"{name}.json", schema(name)


def main() -> None:
    """Write them."""
    for path, text in pages():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
