"""Public collections of known incidents, from the files of their publishers to the layouts of `labelled`."""

import gzip
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import URLError
from urllib.request import urlopen
from zipfile import BadZipFile, ZipFile

import numpy as np

from eccaht.base.arrays import Array
from eccaht.base.files import replacing

Members = dict[str, Callable[[], bytes]]  # the files of an archive, by their paths in it
Written = dict[str, bytes]  # the files of a collection, by their paths in it
SOURCE = "source.json"  # of a collection: where it is from
_LARGEST = 1 << 29  # bytes of a member: the largest of these collections has a twentieth of it
_WAIT = 60.0  # seconds for an answer
_QUIET = 60  # rows of Sock Shop before a fault that are watched
_TEP_SENSORS = [*(f"XMEAS({k})" for k in range(1, 42)), *(f"XMV({k})" for k in range(1, 12))]
_TEP_STEP = np.timedelta64(3, "m")


class Collection(NamedTuple):
    """What it is, where it is published, its licence, and what makes files of `labelled` of its own."""

    about: str
    source: str
    address: str
    licence: str
    convert: Callable[[Members], Written]


def fetch(name: str, directory: Path, given: Path | None = None) -> dict[str, Any]:
    """Write a collection and `SOURCE`, which says where it is from and has the checksum of each file.

    given: the archive, or a folder with what is in it; downloaded if None.
    """
    collection = COLLECTIONS[name]
    digest = None
    if given is not None and given.is_dir():
        files = [file for file in sorted(given.rglob("*")) if file.is_file()]
        written = collection.convert({file.relative_to(given).as_posix(): file.read_bytes for file in files})
    else:
        archive = _downloaded(collection.address) if given is None else given.read_bytes()
        digest = hashlib.sha256(archive).hexdigest()
        with _members(archive, given or collection.address) as members:
            written = collection.convert(members)
    if not written:
        raise ValueError(
            f"{given or collection.address} holds no file of {name}: is it the one of {collection.source}?"
        )
    for place, content in written.items():
        (directory / place).parent.mkdir(parents=True, exist_ok=True)
        with replacing(directory / place) as file:
            file.write(content)
    sums = {place: hashlib.sha256(content).hexdigest() for place, content in sorted(written.items())}
    about = {"collection": name, "source": collection.source, "licence": collection.licence}
    document = {**about, "archive": str(given or collection.address), "archive_sha256": digest, "sha256": sums}
    with replacing(directory / SOURCE) as file:
        file.write(json.dumps(document, indent=1).encode() + b"\n")
    return document


def _downloaded(address: str) -> bytes:
    try:
        with urlopen(address, timeout=_WAIT) as answer:
            return bytes(answer.read())
    except (URLError, OSError) as error:
        raise ValueError(f"{address} cannot be fetched ({error}): download it and give it by --from FILE") from None


@contextmanager
def _members(content: bytes, name: Path | str) -> Iterator[Members]:
    try:
        with ZipFile(BytesIO(content)) as archive:
            infos = [info for info in archive.infolist() if info.file_size <= _LARGEST]
            yield {info.filename: lambda info=info: archive.read(info) for info in infos}  # type: ignore[misc]
    except BadZipFile as error:
        raise ValueError(f"{name} is no zip archive: {error}") from None


def _matching(members: Members, pattern: str) -> Iterator[tuple[tuple[str, ...], Callable[[], bytes]]]:
    """The files whose paths end so, and the groups of the pattern."""
    for name in sorted(members):
        if found := re.search(rf"(?:^|/){pattern}$", name):
            yield found.groups(), members[name]


def _packed(text: str | bytes) -> bytes:
    """The same bytes for the same text, whenever and wherever they are made."""
    packed = BytesIO()
    with gzip.GzipFile(filename="", fileobj=packed, mode="wb", mtime=0) as file:
        file.write(text.encode() if isinstance(text, str) else text)
    return packed.getvalue()


def _skab(members: Members) -> Written:
    pattern = r"data/(valve1|valve2|other|anomaly-free)/([^/]+)\.csv"
    return {f"{group}/{name}.csv.gz": _packed(read()) for (group, name), read in _matching(members, pattern)}


def _smd(members: Members) -> Written:
    written: Written = {}
    truth: dict[str, list[dict[str, Any]]] = {}
    pattern = r"ServerMachineDataset/(train|test|interpretation_label)/(machine-\d+-\d+)\.txt"
    for (part, name), read in _matching(members, pattern):
        if part == "interpretation_label":
            truth[name] = [_segment(line) for line in read().decode().splitlines() if line.strip()]
        else:
            written[f"{part}/{name}.csv.gz"] = _packed(read())
    whole = {
        name: truth[name] for name in truth if {f"{part}/{name}.csv.gz" for part in ("train", "test")} <= {*written}
    }
    return written | {"truth.json": json.dumps(whole, indent=1).encode()} if whole else {}


def _segment(line: str) -> dict[str, Any]:
    """A line such as 15849-16368:1,9,10: rows, half-open, and metrics counted from 1."""
    rows, _, metrics = line.partition(":")
    start, stop = map(int, rows.split("-"))
    return {"start": start, "stop": stop, "dims": [int(metric) - 1 for metric in metrics.split(",")]}


def _tep(members: Members) -> Written:
    written: Written = {}
    for (number, test), read in _matching(members, r"d(\d\d)(_te)?\.dat"):
        if number == "00":
            written["normal-test.csv.gz" if test else "normal.csv.gz"] = _tep_sheet(read())
        elif test:
            written[f"fault-{number}.csv.gz"] = _tep_sheet(read())
    return written if "normal.csv.gz" in written else {}


def _tep_sheet(content: bytes) -> bytes:
    """A row every three minutes; in one of the files the rows are columns."""
    table: Array = np.loadtxt(BytesIO(content))
    rows = table.T if len(table) == len(_TEP_SENSORS) else table
    times = np.datetime64("2024-01-01T00:00:00") + np.arange(len(rows)) * _TEP_STEP
    lines = [",".join([str(time), *(f"{value:g}" for value in row)]) for time, row in zip(times, rows, strict=True)]
    return _packed("\n".join([",".join(["time", *_TEP_SENSORS]), *lines, ""]))


def _sockshop(members: Members) -> Written:
    """Normal operation, and the run with the fault, which was recorded later and is joined on second by second."""
    runs: dict[tuple[str, ...], dict[str, list[str]]] = {}
    pattern = r"sock-shop-data/([a-z-]+)-(cpu|mem)/(\d+)/(normal|anomalous)\.csv"
    for (*case, part), read in _matching(members, pattern):
        runs.setdefault(tuple(case), {})[part] = read().decode().splitlines()
    written: Written = {}
    truth: dict[str, dict[str, str]] = {}
    for (service, resource, number), parts in runs.items():
        if len(parts) < 2:
            continue
        name, (header, *quiet) = f"{service}-{resource}-{number}", parts["normal"]
        rows = [line.partition(",")[2] for line in quiet + parts["anomalous"][1:]]
        times = np.datetime64(int(quiet[0].partition(",")[0]), "s") + np.arange(len(rows))
        lines = [f"{time},{row}" for time, row in zip(times, rows, strict=True)]
        split = len(quiet) - _QUIET
        written[f"{name}/history.csv.gz"] = _packed("\n".join([header, *lines[:split], ""]))
        written[f"{name}/incident.csv.gz"] = _packed("\n".join([header, *lines[split:], ""]))
        truth[name] = {"root": f"{service}_{resource}", "onset": str(times[len(quiet)])}
    return written | {"truth.json": json.dumps(truth, indent=1).encode()} if truth else {}


def _of_github(about: str, repository: str, licence: str, convert: Callable[[Members], Written]) -> Collection:
    source = f"https://github.com/{repository}"
    return Collection(about, source, f"{source}/archive/HEAD.zip", licence, convert)


COLLECTIONS = {
    "skab": _of_github("a pump by the second (Katser and Kozitsin 2020)", "waico/SKAB", "GPL-3.0", _skab),
    "smd": _of_github("28 servers by the minute (Su et al. 2019)", "NetManAIOps/OmniAnomaly", "MIT", _smd),
    "sockshop": _of_github("services by the second (Ikram et al. 2022)", "azamikram/rcd", "none is stated", _sockshop),
    "tep": Collection(
        "the Tennessee Eastman process (Chiang, Russell and Braatz 2001)",
        "http://web.mit.edu/braatzgroup/links.html",
        "http://web.mit.edu/braatzgroup/TE_process.zip",
        "University of Illinois/NCSA",
        _tep,
    ),
}
