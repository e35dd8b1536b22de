"""The settings of sources, one kind each; what is wrong with them is a ValueError of one line.

Settings of secret types, and those that no kind has, are hidden wherever they would leave the service.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    Secret,
    SecretStr,
    SerializationInfo,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
)

from eccaht.base.clock import as_zone
from eccaht.service.hiding import HIDDEN, HOSTS, SecretUrl, shown_hosts, shown_url
from eccaht.service.parts import Part, Port, Seconds, faults_of
from eccaht.service.rows import Codes, Unit

Show = Callable[[Any], Any]
_OPTION_NAMES = """
auto.offset.reset broker.address.family broker.address.ttl check.crcs client.id client.rack
enable.ssl.certificate.verification fetch.error.backoff.ms fetch.max.bytes fetch.message.max.bytes fetch.min.bytes
fetch.wait.max.ms group.instance.id group.protocol heartbeat.interval.ms isolation.level log_level
max.partition.fetch.bytes metadata.max.age.ms partition.assignment.strategy queued.max.messages.kbytes
queued.min.messages reconnect.backoff.max.ms reconnect.backoff.ms sasl.mechanism sasl.mechanisms security.protocol
session.timeout.ms socket.connection.setup.timeout.ms socket.keepalive.enable socket.timeout.ms ssl.ca.location
ssl.certificate.location ssl.endpoint.identification.algorithm
"""
_OPTIONS = frozenset(_OPTION_NAMES.split())  # options of librdkafka that hold no secret


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: HIDDEN if isinstance(inner, dict | list) else inner for name, inner in value.items()}
    return HIDDEN if isinstance(value, list) else value


def _file(value: Any) -> Any:
    """The name of a file; its content, given by mistake, is hidden."""
    return value if isinstance(value, str) and value.isprintable() and len(value) < 256 else HIDDEN


def _url(value: Any) -> Any:
    return shown_url(value) if isinstance(value, str) else HIDDEN


def _options(value: Any) -> Any:
    if not isinstance(value, dict):
        return HIDDEN
    return {name: _plain(inner) if name in _OPTIONS else HIDDEN for name, inner in value.items()}


_SHOWN_PARTS: dict[str, Show] = {"host": shown_hosts, "servers": shown_hosts, "url": _url, "options": _options}
Zone = Annotated[str, BeforeValidator(as_zone)]
Format = Literal["json", "csv"]


def _named(path: Path) -> Path:
    if _file(str(path)) == HIDDEN:
        raise ValueError("give the name of a file, not what it holds")
    return path


File = Annotated[Path, AfterValidator(_named)]


class SourceSettings(Part):
    """What all sources have; feed: module and class of the feed, imported when it is made, because it needs packages of
    its own."""

    feed: ClassVar[str]
    timezone: Zone | None = Field(None, description="where times without an offset are")

    def secrets(self) -> Iterator[str]:
        """All that is hidden of these settings, for texts in which it might stand."""
        for _, value in self:
            if isinstance(value, SecretUrl):
                yield from value.secrets()
            elif isinstance(value, SecretStr):
                yield value.get_secret_value()


class ReadingSettings(SourceSettings):
    """How rows are read, by HTTP too."""

    time_unit: Unit = Field("auto", description="of times that are numbers: s, ms, us, ns; auto goes by their size")
    time_key: str = Field("time", min_length=1, description="the time in a JSON object")
    value_key: str = Field("value", min_length=1, description="the value in a JSON object of one reading")
    quality_key: str = Field("quality", min_length=1, description="the quality in a JSON object")
    quality_codes: Codes | None = Field(None, description="what numbers in the place of a quality are")
    uncertain: Literal["good", "bad"] = Field("good", description="what readings of uncertain quality count as")


class PayloadSettings(ReadingSettings):
    """How messages are collected and their payloads read."""

    wait: Seconds = Field(0.1, le=60.0, description="how long messages are collected before they are submitted")
    format: Format = Field("json", description="of payloads: json (or a plain number), or csv with its column names")


class FileSettings(SourceSettings):
    """A CSV file that grows."""

    feed = "library:file_feed"
    kind: Literal["file"]
    path: File = Field(description="the file; it may come later")
    poll: Seconds = Field(1.0, description="how often the file is looked at")
    overlap: Seconds = Field(300.0, description="rows so much older than the last one are read again after a restart")
    missing: Literal["refuse", "allow"] = Field("refuse", description="whether the file may lack sensors of the model")
    decimal_comma: bool | None = Field(None, description="whether numbers are written as 1,5; found unless given")


class MqttSettings(PayloadSettings):
    """Topics of a broker of MQTT 5."""

    feed = "mqtt:MqttFeed"
    kind: Literal["mqtt"]
    host: str = Field("localhost", pattern=HOSTS, description="the broker")
    port: Port = Field(1883, description="8883 is usual with TLS")
    topic: str = Field(min_length=1, description="plant/{plant}/{sensor}, or one topic with all sensors as JSON")
    names: dict[str, str] = Field(default_factory=dict, description="sensors of the model by their name in the topic")
    client_id: str | None = Field(None, description="eccaht-PLANT-SOURCE unless given; only one service may use it")
    session: Seconds = Field(7 * 86400.0, description="for how long the broker keeps messages")
    in_flight: int = Field(20, ge=1, le=65535, description="messages without acknowledgement")
    keepalive: int = Field(30, ge=5, le=3600, description="seconds after which a silent broker is asked for a sign")
    username: SecretStr | None = Field(None, description="who we are")
    password: SecretStr | None = Field(None, description="goes with it")
    tls: bool = Field(False, description="whether to encrypt, and to check the certificate of the broker")
    ca_file: File | None = Field(None, description="certificates of those who may sign the broker's; the system's")
    certificate: File | None = Field(None, description="ours, if the broker asks for one")
    key: File | None = Field(None, description="of our certificate")


def _of_opcua(url: SecretUrl) -> SecretUrl:
    if not url.get_secret_value().startswith("opc.tcp://"):
        raise ValueError("write it as opc.tcp://HOST:4840/PATH")
    return url


class OpcUaSettings(SourceSettings):
    """Nodes of an OPC UA server."""

    feed = "opcua:OpcUaFeed"
    kind: Literal["opcua"]
    url: Annotated[SecretUrl, AfterValidator(_of_opcua)] = Field(description="opc.tcp://HOST:4840/PATH")
    nodes: dict[str, str] = Field(min_length=1, description="the node id of each sensor, such as ns=2;s=Pump.Flow")
    interval: Seconds = Field(1.0, description="how often the server sends what changed")
    read_every: Seconds | None = Field(None, description="read all nodes so often instead of subscribing to them")
    queue: int = Field(600, ge=1, le=100_000, description="changes of a node that the server keeps for us")
    uncertain: Literal["good", "bad"] = Field("good", description="what readings of uncertain quality count as")
    timeout: Seconds = Field(10.0, description="how long an answer may take")
    username: SecretStr | None = Field(None, description="who we are")
    password: SecretStr | None = Field(None, description="goes with it")
    policy: Literal["none", "Basic256Sha256", "Aes128Sha256RsaOaep", "Aes256Sha256RsaPss"] = Field(
        "none", description="Basic256Sha256, Aes128Sha256RsaOaep or Aes256Sha256RsaPss; needs certificate and key"
    )
    mode: Literal["Sign", "SignAndEncrypt"] = Field("SignAndEncrypt", description="or Sign; with a policy")
    application_uri: str = Field("urn:eccaht:client", description="our name, as in our certificate")
    certificate: File | None = Field(None, description="ours, PEM or DER")
    key: File | None = Field(None, description="of our certificate")
    server_certificate: File | None = Field(None, description="the server's; without it any that it shows is trusted")


class KafkaSettings(PayloadSettings):
    """A topic of Kafka; the key of a message is the name of its plant."""

    feed = "kafka:KafkaFeed"
    kind: Literal["kafka"]
    servers: str = Field(pattern=HOSTS, description="HOST:PORT, several with commas")
    topic: str = Field(min_length=1, description="its messages have the name of the plant as key")
    group: str | None = Field(None, description="of consumers that share the plants; eccaht-PLANT or eccaht")
    first: Literal["earliest", "latest"] = Field("earliest", description="where a new group begins")
    names: dict[str, str] = Field(default_factory=dict, description="sensors of the model by their name in messages")
    batch: int = Field(1000, ge=1, le=100_000, description="messages taken at once")
    session: Seconds = Field(10.0, description="after so long without a sign of life others take over")
    options: dict[str, SecretStr] = Field(default_factory=dict, description="of librdkafka, such as sasl.username")

    def secrets(self) -> Iterator[str]:
        yield from (value.get_secret_value() for name, value in self.options.items() if name not in _OPTIONS)


class SqlSettings(SourceSettings):
    """A table of a database, read by time."""

    feed = "sql:SqlFeed"
    kind: Literal["sql"]
    url: SecretUrl = Field(description="sqlite:///FILE or postgresql+psycopg://USER:PASSWORD@HOST/DATABASE")
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


# every kind of source there is: a new one is added here
AnySettings = FileSettings | MqttSettings | OpcUaSettings | KafkaSettings | SqlSettings
_BY_KIND: dict[str, type[SourceSettings]] = {
    get_args(settings.model_fields["kind"].annotation)[0]: settings for settings in get_args(AnySettings)
}
_ANY: TypeAdapter[AnySettings] = TypeAdapter(Annotated[AnySettings, Field(discriminator="kind")])


def shown(document: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a source for every user who may read: whatever is not known to be harmless is hidden.

    >>> shown({"kind": "sql", "url": "postgresql://anna:x@host/db", "table": "t", "passwort": "x"})
    {'kind': 'sql', 'url': 'postgresql://***@host/db', 'table': 't', 'passwort': '***'}
    """
    shows = _shows(document)
    return {name: shows[name](value) if name in shows else HIDDEN for name, value in document.items()}


def _shows(document: Mapping[str, Any]) -> dict[str, Show]:
    kind = document.get("kind")
    return shows_of(_BY_KIND[kind]) if isinstance(kind, str) and kind in _BY_KIND else {}


@cache
def shows_of(kind: type[SourceSettings]) -> dict[str, Show]:
    """How the settings of a kind are shown, by name, without those that are hidden."""
    shows: dict[str, Show] = {}
    for name, field in kind.model_fields.items():
        types = list(_types(field.annotation))
        if name in _SHOWN_PARTS:
            shows[name] = _SHOWN_PARTS[name]
        elif not any(isinstance(each, type) and issubclass(each, SecretStr) for each in types):
            shows[field.alias or name] = _file if Path in types else _plain
    return shows


def _types(annotation: Any) -> Iterator[Any]:
    yield annotation
    for inner in get_args(annotation):
        yield from _types(inner)


def _serialized(source: Secret[dict[str, Any]], info: SerializationInfo) -> Any:
    return shown(source.get_secret_value()) if info.mode == "json" else source


SourceDocument = Annotated[
    Secret[dict[str, Any]],
    PlainSerializer(_serialized),
    WithJsonSchema({"type": "object", "additionalProperties": True}),
]  # the settings of a source as they were given, which may be wrong; as JSON without secrets


def read_settings(document: Mapping[str, Any], name: str) -> AnySettings:
    """The settings of the source of this name.

    >>> read_settings({"kind": "file", "path": "a.csv", "poll": "2s"}, "log").poll
    2.0
    >>> read_settings({"kind": "fax"}, "log")
    Traceback (most recent call last):
    ...
    ValueError: source 'log': kind must be 'file', 'mqtt', 'opcua', 'kafka' or 'sql'
    """
    _refuse_hidden(document, name)
    try:
        return _ANY.validate_python(dict(document))
    except ValidationError as error:
        if error.errors()[0]["type"].startswith("union_tag"):
            *others, last = map(repr, _BY_KIND)
            raise ValueError(f"source {name!r}: kind must be {', '.join(others)} or {last}") from None
        faults = faults_of(error, _BY_KIND[document["kind"]], skip=1)  # skip: the kind
        raise ValueError(f"source {name!r}: {'; '.join(faults)}") from None


def _refuse_hidden(document: Mapping[str, Any], name: str) -> None:
    """Refuse what was read from the service and sent back: the mark in the place of a secret is no secret."""
    shows = _shows(document)
    for setting, value in document.items():
        if (show := shows.get(setting)) is _plain:
            continue
        for inner, text in value.items() if isinstance(value, dict) else [("", value)]:
            if text == HIDDEN or (show is _url and HIDDEN in str(text)):
                place = f"{setting}.{inner}" if inner else setting
                raise ValueError(f"source {name!r}: setting {place} is hidden as {HIDDEN}: give it again in full")
