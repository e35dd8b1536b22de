"""What the parts of the settings are made of."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from eccaht.base.durations import parse_duration

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")]
Port = Annotated[int, Field(ge=1, le=65535)]
Seconds = Annotated[float, BeforeValidator(lambda value: parse_duration(value, "the length of time"))]


class Part(BaseModel):
    """Settings that belong together; what is not known is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)
