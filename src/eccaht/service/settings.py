"""The settings of the service: a file of TOML, the environment and flags, the later ones stronger.

In the environment a setting is called ECCAHT_ and its place, with two underscores between: ECCAHT_STORE__URL.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError
from pydantic_core import to_jsonable_python
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from eccaht.service.alerts.sender import Alerts
from eccaht.service.hiding import SecretUrl
from eccaht.service.parts import Line, Name, Part, SecondsOrZero, faults_of
from eccaht.service.security.settings import Security
from eccaht.service.sources.settings import SourceDocument

_SQLITE = re.compile(r"sqlite:///(?!:|file:)(.+)")  # with a file
Unit = Annotated[Line, Field(min_length=1, max_length=20)]


class StoreSettings(Part):
    """Where windows, states and events are kept."""

    url: SecretUrl = Field(
        SecretUrl("sqlite:///eccaht.db"), description="sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE"
    )
    schema_name: str | None = Field(None, description="PostgreSQL: the schema of all tables", alias="schema")


class Listen(Part):
    """Where the service listens."""

    host: str = Field("127.0.0.1", description="address; any other than this machine's own needs a token")
    port: int = Field(8765, ge=0, le=65535, description="port; 0: any that is free")
    address: Line | None = Field(
        None, description="where other services with the same store reach this one; usually http://HOST:PORT"
    )


class ServiceLimits(Part):
    """How much may come at once, so that memory stays bounded."""

    body: int = Field(8_000_000, ge=1000, description="bytes of a request")
    model: int = Field(256_000_000, ge=1000, description="bytes of an uploaded model; one of 1000 sensors has 85 MB")
    rows: int = Field(10_000, ge=1, description="rows of one delivery")
    waiting: int = Field(1000, ge=1, description="deliveries that wait to be stored, of all plants together")
    pending: int = Field(200_000, ge=1, description="rows of a plant that wait; beyond, its oldest window is complete")
    plants: int = Field(1000, ge=1, description="plants")
    clients: int = Field(500, ge=1, description="open streams of events")


class Retention(Part):
    """For how long things are kept; 0 is for ever."""

    windows: SecondsOrZero = Field(90 * 86400.0, description="windows")
    events: SecondsOrZero = Field(0.0, description="events, their comments and alerts")
    audit: SecondsOrZero = Field(0.0, description="who did what")


class PlantOptions(Part):
    """How a plant is watched.

    false_alarms: how many are bearable. lateness: for how long a window waits for rows that come late, in seconds.
    ahead: how far the clocks of sources may be ahead of the service's: after a gap, rows further in the future wait,
    and those of another day are left out. readings: how many sensors are read in a window, those that `/next` asks for;
    all of them if not given. costs: of sensors whose reading costs more than 1. at_least_every: times such as 1h within
    which sensors are read. units: of sensors whose names do not have theirs, as "Temp [°C]" has.
    sources: by name, the settings of each.
    """

    false_alarms: str | None = Field(None, max_length=40, description="1/30d, or 1/5000w for windows")
    lateness: SecondsOrZero = Field(0.0, ge=0, le=86400, description="how long a window waits for rows that come late")
    ahead: SecondsOrZero = Field(600.0, gt=0, description="how far clocks of sources may be ahead of the service's")
    readings: float | None = Field(None, gt=0, description="sensors read in a window, those asked for; without it: all")
    costs: dict[Line, float] = Field(default_factory=dict, max_length=5000, description="of readings, 1 if not given")
    at_least_every: dict[Line, Line] = Field(
        default_factory=dict, max_length=5000, description="times such as 1h within which sensors are read"
    )
    units: dict[Line, Unit] = Field(default_factory=dict, max_length=5000, description="units of sensors, for the page")
    sources: dict[Name, SourceDocument] = Field(default_factory=dict, max_length=20, description="where rows come from")

    def options(self) -> PlantOptions:
        """Without what a subclass has beside them: the model."""
        return PlantOptions(**self.model_dump(include=set(PlantOptions.model_fields)))

    def stored(self) -> dict[str, Any]:
        """As values of JSON with the secrets of sources, for the store alone: `model_dump` leaves these out."""
        sources = {name: to_jsonable_python(source.get_secret_value()) for name, source in self.sources.items()}
        return {**self.model_dump(mode="json"), "sources": sources}


class PlantSettings(PlantOptions):
    """A plant of the file: its model and how it is watched."""

    model: Path = Field(description="what 'eccaht calibrate' wrote")


class Settings(BaseSettings):
    """All settings of the service."""

    model_config = SettingsConfigDict(
        env_prefix="ECCAHT_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        hide_input_in_errors=True,
    )
    store: StoreSettings = StoreSettings()
    listen: Listen = Listen()
    limits: ServiceLimits = ServiceLimits()
    retention: Retention = Retention()
    alerts: Alerts = Alerts()
    security: Security = Security()
    plants: dict[Name, PlantSettings] = {}
    sources: dict[Name, SourceDocument] = Field({}, max_length=20, description="of several plants: Kafka")
    demo: bool = Field(False, description="watch a simulated plant whose sensors fail now and then")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment is stronger than what `load_settings` hands over from the file."""
        return (env_settings, init_settings)


def load_settings(file: Path | None = None, **flags: Any) -> Settings:
    """The settings of a file, the environment and flags; what is wrong is a ValueError of one line.

    flags: parts with what was given on the command line, such as listen={"port": 8000}.
    """
    given: dict[str, Any] = {}
    if file is not None:
        try:
            given = tomllib.loads(file.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{file} is no file of TOML: {error}") from None
        _put_beside(file.parent.absolute(), given)
    try:
        settings = Settings(**given)
    except ValidationError as error:
        raise ValueError("; ".join(faults_of(error, Settings))) from None
    stronger = {name: _stronger(settings, name, part) for name, part in flags.items()}
    return settings.model_copy(update=stronger)


def _stronger(settings: Settings, name: str, part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    now = getattr(settings, name)
    try:
        return type(now).model_validate({**now.model_dump(by_alias=True), **part})
    except ValidationError as error:
        raise ValueError("; ".join(faults_of(error, type(now), name))) from None


def _put_beside(folder: Path, part: Any) -> None:
    """Make the paths of models, of file sources and of SQLite in a part of a file those beside the file."""
    if not isinstance(part, dict):
        return
    for name, value in part.items():
        if isinstance(value, dict):
            _put_beside(folder, value)
        elif isinstance(value, str) and (name == "model" or (name == "path" and part.get("kind") == "file")):
            part[name] = os.fspath(folder / value)
        elif isinstance(value, str) and name == "url" and (found := _SQLITE.fullmatch(value)):
            part[name] = f"sqlite:///{folder / found[1]}"
