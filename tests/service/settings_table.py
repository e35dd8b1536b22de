"""The table of all settings in docs/live.md, made from the settings themselves.

`python -m tests.service.settings_table` prints it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from eccaht.base.clock import show_duration
from eccaht.service.settings import PlantSettings, Settings

_SECONDS = ("retention", "session", "_time", "first", "longest", "timeout", "lateness", "ahead")


def rows() -> Iterator[tuple[str, str, str]]:
    """Name, default and meaning of every setting but those of sources, which have a page of their own."""
    yield from _part(Settings, "", leave=("plants",))
    yield from _part(PlantSettings, "plants.NAME.", leave=("sources",))


def _part(model: type[BaseModel], prefix: str, leave: tuple[str, ...] = ()) -> Iterator[Any]:
    for field, info in model.model_fields.items():
        name = prefix + (info.alias or field)
        inner, many = _inner(info.annotation)
        if field in leave:
            continue
        if inner is not None:
            yield from _part(inner, f"{name}.NAME." if many else f"{name}.")
        else:
            yield name, _default(name, info), info.description or ""


def _inner(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    """The part that a setting is, and whether there are many of them by name."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, False
    found = [kind for kind in get_args(annotation) if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return (found[0], getattr(annotation, "__origin__", None) is dict) if found else (None, False)


def _default(name: str, info: FieldInfo) -> str:
    value = info.get_default(call_default_factory=True, validated_data={})
    if value is PydanticUndefined:
        return "needed"
    value = value.get_secret_value() if isinstance(value, SecretStr) else value
    if value is None or value in ("", [], {}):
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, float) and any(word in name for word in _SECONDS):
        return f"`{show_duration(value)}`" if value else "`0s`"
    return f"`{value:,.0f}`".replace(",", "_") if isinstance(value, float) and value == int(value) else f"`{value}`"


def table() -> list[str]:
    """The lines of the table."""
    lines = ["| setting | default | what it is |", "|---|---|---|"]
    return lines + [f"| `{name}` | {default} | {what.replace('|', chr(92) + '|')} |" for name, default, what in rows()]


if __name__ == "__main__":
    print("\n".join(table()))
