"""What settings and requests are made of: names, lengths of time, and texts that every store can keep and every page
can show."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, get_args
from unicodedata import category

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from eccaht.base.clock import parse_duration
from eccaht.base.presentation.text import did_you_mean

_ZERO = (0, "0", "0s")
_BREAKS = frozenset("\t\n\r")


class Part(BaseModel):
    """Settings that belong together; what is not known is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def readable(value: Any) -> Any:
    """Return a value of JSON unchanged; one with a text that holds a control character or half a letter is refused.

    PostgreSQL keeps no NUL, and a surrogate without its partner is no UTF-8.

    >>> readable({"a": ["two\\nlines"]})
    {'a': ['two\\nlines']}
    """
    parts = [value]
    while parts:  # no recursion: documents of untrusted callers may be deep
        part = parts.pop()
        if isinstance(part, dict):
            parts += [*part, *part.values()]
        elif isinstance(part, list):
            parts += part
        elif isinstance(part, str) and any(category(c) in ("Cc", "Cs") and c not in _BREAKS for c in part):
            raise ValueError("a text holds a control character or half a letter: leave it out")
    return value


def faults_of(error: ValidationError, shape: type[BaseModel], *before: str, skip: int = 0) -> Iterator[str]:
    """All that is wrong with settings of a shape; before: where these are, skip: parts of a place that are no names."""
    for each in error.errors():
        place = each["loc"][skip:]
        name = f"setting {'.'.join(map(str, (*before, *place)))}"
        if each["type"] == "extra_forbidden":
            yield f"{name} is no setting{did_you_mean(place[-1], _names_at(shape, place[:-1]))}"
        else:
            yield f"{name} is missing" if each["type"] == "missing" else f"{name}: {each['msg']}"


def _names_at(shape: type[BaseModel], place: Sequence[int | str]) -> list[str]:
    """The settings that there are at a place, whose other parts are names that users gave."""
    for part in place:
        if (field := shape.model_fields.get(str(part))) is not None:
            kinds = (field.annotation, *get_args(field.annotation))
            shape = next((kind for kind in kinds if hasattr(kind, "model_fields")), shape)
    return [field.alias or name for name, field in shape.model_fields.items()]


def _one_line(text: str) -> str:
    if any(letter in _BREAKS for letter in text):
        raise ValueError("the text must be one line")
    return text


def _seconds(value: Any) -> float:
    return parse_duration(value, "the length of time")


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")]
Port = Annotated[int, Field(ge=1, le=65535)]
Seconds = Annotated[float, BeforeValidator(_seconds)]
SecondsOrZero = Annotated[float, BeforeValidator(lambda value: 0.0 if value in _ZERO else _seconds(value))]
Text = Annotated[str, AfterValidator(readable)]
Line = Annotated[Text, AfterValidator(_one_line)]
