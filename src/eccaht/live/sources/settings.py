"""The settings of sources, one kind each; what is wrong with them is a ValueError of one line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, TypeAdapter, ValidationError

from eccaht.data.clock import as_zone
from eccaht.data.durations import parse_duration
from eccaht.live.sources.moments import Unit
from eccaht.live.sources.quality import Codes

Seconds = Annotated[float, BeforeValidator(lambda value: parse_duration(value, "the length of time"))]
Zone = Annotated[str, BeforeValidator(as_zone)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Kind(_Part):
    """What all sources have."""

    timezone: Zone | None = Field(None, description="where times without an offset are")


class PayloadSettings(_Kind):
    """How messages are collected and their payloads read."""

    wait: Seconds = Field(0.1, le=60.0, description="how long messages are collected before they are submitted")
    time_unit: Unit = Field("auto", description="of times that are numbers: s, ms, us, ns; auto goes by their size")
    time_key: str = Field("time", min_length=1, description="the time in a JSON object")
    value_key: str = Field("value", min_length=1, description="the value in a JSON object of one reading")
    quality_key: str = Field("quality", min_length=1, description="the quality in a JSON object")
    quality_codes: Codes | None = Field(None, description="what numbers in the place of a quality are")
    uncertain: Literal["good", "bad"] = Field("good", description="what readings of uncertain quality count as")


class FileSettings(_Kind):
    """A CSV file that grows."""

    kind: Literal["file"]
    path: Path = Field(description="the file; it may come later")
    poll: Seconds = Field(1.0, description="how often the file is looked at")
    overlap: Seconds = Field(300.0, description="rows so much older than the last one are read again after a restart")
    missing: Literal["refuse", "allow"] = Field("refuse", description="whether the file may lack sensors of the model")
    decimal_comma: bool | None = Field(None, description="whether numbers are written as 1,5; found unless given")


class MqttSettings(PayloadSettings):
    """Topics of an MQTT broker."""

    kind: Literal["mqtt"]
    host: str = Field("localhost", description="the broker")
    port: int = Field(1883, ge=1, le=65535, description="8883 is usual with TLS")
    topic: str = Field(min_length=1, description="plant/{plant}/{sensor}, or one topic with all sensors as JSON")
    names: dict[str, str] = Field(default_factory=dict, description="sensors of the model by their name in the topic")
    protocol: Literal["5", "3.1.1"] = Field("5", description="version of MQTT, 5 or 3.1.1")
    client_id: str | None = Field(None, description="eccaht-PLANT-SOURCE unless given; only one service may use it")
    session: Seconds = Field(7 * 86400.0, description="for how long the broker keeps messages (MQTT 5)")
    in_flight: int = Field(1000, ge=1, le=65535, description="messages without acknowledgement (MQTT 5)")
    keepalive: int = Field(30, ge=5, le=3600, description="seconds after which a silent broker is asked for a sign")
    username: str | None = Field(None, description="who we are")
    password: SecretStr | None = Field(None, description="goes with it")
    tls: bool = Field(False, description="whether to encrypt, and to check the certificate of the broker")
    ca_file: Path | None = Field(None, description="certificates of those who may sign the broker's; the system's")
    certificate: Path | None = Field(None, description="ours, if the broker asks for one")
    key: Path | None = Field(None, description="of our certificate")


class OpcUaSettings(_Kind):
    """Nodes of an OPC UA server."""

    kind: Literal["opcua"]
    url: str = Field(pattern=r"^opc\.tcp://", description="opc.tcp://HOST:4840/PATH")
    nodes: dict[str, str] = Field(min_length=1, description="the node id of each sensor, such as ns=2;s=Pump.Flow")
    interval: Seconds = Field(1.0, description="how often the server sends what changed")
    read_every: Seconds | None = Field(None, description="read all nodes so often instead of subscribing to them")
    queue: int = Field(600, ge=1, le=100_000, description="changes of a node that the server keeps for us")
    uncertain: Literal["good", "bad"] = Field("good", description="what readings of uncertain quality count as")
    timeout: Seconds = Field(10.0, description="how long an answer may take")
    username: str | None = Field(None, description="who we are")
    password: SecretStr | None = Field(None, description="goes with it")
    policy: Literal["none", "Basic256Sha256", "Aes128Sha256RsaOaep", "Aes256Sha256RsaPss"] = Field(
        "none", description="Basic256Sha256, Aes128Sha256RsaOaep or Aes256Sha256RsaPss; needs certificate and key"
    )
    mode: Literal["Sign", "SignAndEncrypt"] = Field("SignAndEncrypt", description="or Sign; with a policy")
    application_uri: str = Field("urn:eccaht:client", description="our name, as in our certificate")
    certificate: Path | None = Field(None, description="ours, PEM or DER")
    key: Path | None = Field(None, description="of our certificate")
    server_certificate: Path | None = Field(None, description="the server's; without it any that it shows is trusted")


class KafkaSettings(PayloadSettings):
    """A topic of Kafka; the key of a message is the name of its plant."""

    kind: Literal["kafka"]
    servers: str = Field(min_length=1, description="HOST:PORT, several with commas")
    topic: str = Field(min_length=1, description="its messages have the name of the plant as key")
    group: str | None = Field(None, description="of consumers that share the plants; eccaht-PLANT or eccaht")
    first: Literal["earliest", "latest"] = Field("earliest", description="where a new group begins")
    names: dict[str, str] = Field(default_factory=dict, description="sensors of the model by their name in messages")
    batch: int = Field(1000, ge=1, le=100_000, description="messages taken at once")
    session: Seconds = Field(10.0, description="after so long without a sign of life others take over")
    options: dict[str, str] = Field(default_factory=dict, description="of librdkafka, such as sasl.username")


class SqlSettings(_Kind):
    """A table of a database, read by time."""

    kind: Literal["sql"]
    url: SecretStr = Field(description="sqlite:///FILE or postgresql+psycopg://USER:PASSWORD@HOST/DATABASE")
    table: str = Field(min_length=1, description="or a view")
    schema_name: str | None = Field(None, alias="schema", description="of the table, if not the usual one")
    layout: Literal["wide", "long"] = Field("wide", description="a column a sensor, or a row a reading")
    time: str = Field("time", description="the column of the time")
    sensor: str = Field("sensor", description="long: the column of the sensor")
    value: str = Field("value", description="long: the column of the value")
    quality: str | None = Field(None, description="long: the column of the quality")
    quality_codes: Codes | None = Field(None, description="what numbers in the place of a quality are")
    uncertain: Literal["good", "bad"] = Field("good", description="what readings of uncertain quality count as")
    plant_column: str | None = Field(None, description="where the table holds several plants: the column of its name")
    plant_value: str | None = Field(None, description="what stands there; the name of the plant unless given")
    columns: dict[str, str] = Field(default_factory=dict, description="wide: the column of each sensor; its own name")
    time_unit: Unit = Field("auto", description="of times that are numbers")
    poll: Seconds = Field(5.0, description="how often the table is read")
    overlap: Seconds = Field(300.0, description="rows that come so late are still found")
    first: Literal["newest", "oldest"] = Field("newest", description="where to begin when nothing was read before")
    batch: int = Field(5000, ge=10, le=100_000, description="rows read at once")


AnySettings = FileSettings | MqttSettings | OpcUaSettings | KafkaSettings | SqlSettings
_ANY: TypeAdapter[AnySettings] = TypeAdapter(Annotated[AnySettings, Field(discriminator="kind")])


def read_settings(document: Mapping[str, Any], name: str) -> AnySettings:
    """The settings of the source of this name.

    >>> read_settings({"kind": "file", "path": "a.csv", "poll": "2s"}, "log").poll
    2.0
    >>> read_settings({"kind": "fax"}, "log")
    Traceback (most recent call last):
    ...
    ValueError: source 'log': kind must be 'file', 'mqtt', 'opcua', 'kafka' or 'sql', not 'fax'
    """
    try:
        return _ANY.validate_python(dict(document))
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"].startswith("union_tag"):
            kinds = "'file', 'mqtt', 'opcua', 'kafka' or 'sql'"
            raise ValueError(f"source {name!r}: kind must be {kinds}, not {document.get('kind')!r}") from None
        place = ".".join(map(str, first["loc"][1:]))
        raise ValueError(f"source {name!r}: setting {place}: {first['msg']}") from None
