r"""WaDi, the water distribution testbed of iTrust (SUTD): where its files are, what was attacked when, and names.

The files are only given out on request (docs/paper/real-data.md), under two sets of names. Those of 2017 call a column
`\\WIN-...\LOG_DATA\1_AIT_001_PV`, those of 2019 `1_AIT_001_PV`, and the list of attacks `1_AIT_001`.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.plants import recorded_of
from eccaht.plants.data.recorded import Recorded

# history and attack data as they are called in the two editions
EDITIONS = {
    "2017": ("WADI_14days.csv", "WADI_attackdata.csv"),
    "2019": ("WADI_14days_new.csv", "WADI_attackdataLABLE.csv"),
}
FIRST_ATTACK_ROW = datetime(2017, 10, 9, 18)  # of either attack file; from there on a row a second
NOT_SENSORS = ("ROW", "DATE", "TIME")
_LABEL = "ATTACK_LAB"  # the label column of 2019 is called "Attack LABLE (1:No Attack, -1:Attack)"


@dataclass(frozen=True)
class WadiFiles:
    """The two files of an edition, and their rows, each looked at once."""

    edition: str
    history: Path
    attacks: Path

    @cached_property
    def history_rows(self) -> Recorded:
        return Recorded(self.history)

    @cached_property
    def attack_rows(self) -> Recorded:
        return Recorded(self.attacks)


def find_files(directory: Path) -> WadiFiles:
    """Find the newest edition that is complete, in the directory or one below it, packed or not."""
    if not directory.is_dir():
        raise ValueError(f"{directory} is not a directory: give the one that holds the WaDi files")
    places = [directory, *sorted(path for path in directory.iterdir() if path.is_dir())]
    for edition, names in reversed(EDITIONS.items()):
        for place in places:
            found = [path for name in names for path in (place / name, place / f"{name}.gz") if path.is_file()]
            if len(found) == len(names):
                return WadiFiles(edition, *found)
    wanted = " or ".join(" with ".join(names) for names in EDITIONS.values())
    raise ValueError(f"no WaDi data in {directory}: it needs {wanted} (docs/paper/real-data.md: where to get them)")


@dataclass(frozen=True)
class Attack:
    """One interval of the list of attacks; `number` is iTrust's, and two of them share an interval."""

    number: str
    start: datetime
    end: datetime
    points: tuple[str, ...]
    note: str


def read_attacks(wanted: Sequence[str] | None = None) -> list[Attack]:
    """The attacks of October 2017, all or those of the given numbers, in the order of time."""
    text = (files("eccaht.research.datasets") / "wadi_attacks.csv").read_text(encoding="utf-8")
    attacks = [
        Attack(
            number=row["number"],
            start=datetime.fromisoformat(row["start"]),
            end=datetime.fromisoformat(row["end"]),
            points=tuple(row["points"].split(";")),
            note=row["note"],
        )
        for row in csv.DictReader(text.splitlines())
    ]
    if wanted is None:
        return attacks
    known = [attack.number for attack in attacks]
    for number in wanted:
        if number not in known:
            raise ValueError(f"there is no attack {number!r} in WaDi: use {', '.join(known)}")
    return [attack for attack in attacks if attack.number in wanted]


def tag(column: str) -> str:
    r"""The tag in a column name, without any path before it, in a uniform spelling."""
    return re.sub(r"[^0-9A-Z]+", "_", re.split(r"[\\/]", column.strip())[-1].upper()).strip("_")


def is_sensor(column: str) -> bool:
    name = tag(column)
    return bool(name) and name not in NOT_SENSORS and not name.startswith(_LABEL)


class Matched(NamedTuple):
    """Columns of the attacked points, and of each point without exactly one column the reason."""

    columns: tuple[str, ...]
    unmatched: dict[str, str]


def match_points(points: Iterable[str], columns: Sequence[str]) -> Matched:
    """Find the column of each point: the tag itself, or the only one that goes on from it (1_MV_001 -> ..._STATUS)."""
    tags = {column: tag(column) for column in columns}
    found: dict[str, None] = {}
    unmatched = {}
    for point in points:
        name = tag(point)
        exact = [column for column, own in tags.items() if own == name]
        candidates = exact or [column for column, own in tags.items() if own.startswith(f"{name}_")]
        if len(candidates) == 1:
            found[candidates[0]] = None
        else:
            unmatched[point] = f"several columns: {', '.join(candidates)}" if candidates else "no column"
    return Matched(tuple(found), unmatched)


def check_beginning(files: WadiFiles) -> None:
    """Refuse attack data that do not begin on 9 October 2017: their times are counted from there, a row a second.

    The times in the files cannot be used throughout: the editions write day and month in different orders, and
    copies of the newer one are about that have lost the hours.
    """
    (layout,) = files.attack_rows.layouts
    dates = [texts[0] for k, name in enumerate(layout.names) if tag(name) == "DATE" and (texts := layout.texts(k))]
    numbers = sorted(int(part) % 2000 for part in re.findall(r"[0-9]+", dates[0])[:3]) if dates else []
    if numbers != [9, 10, 17]:
        found = f"begin on {dates[0]}" if dates else "have no dates"
        raise ValueError(f"{files.attacks} should begin on 9 October 2017 at 18:00, but its rows {found}")


def not_sensors(file: Path | Recorded) -> list[str]:
    return [name for name in recorded_of(file).layouts[0].names if not is_sensor(name)]


def clock(moments: NDArray[np.datetime64]) -> NDArray[np.datetime64]:
    """Times of the attack data, which are counted from 1970, by the clock of the testbed."""
    return moments - np.datetime64(0, "us") + np.datetime64(FIRST_ATTACK_ROW, "us")


def whole_windows(attack: Attack, starts: NDArray[np.datetime64], seconds: float) -> NDArray[np.intp]:
    """The windows, by their starts on the testbed's clock, that lie completely within the attack."""
    length = np.timedelta64(round(seconds * 1e6), "us")
    first, last = np.datetime64(attack.start, "us"), np.datetime64(attack.end, "us")
    return np.flatnonzero((starts >= first) & (starts + length <= last))
