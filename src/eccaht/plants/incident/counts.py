"""What drills on the history counted, and how often an answer like this one was right in them.

Words, tables and pictures are made of `Counts` elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from scipy.special import gammainc

from eccaht.base.codec import Field, Fields, Part, Sizes, built
from eccaht.base.presentation.text import confident, counted, lasting, percent
from eccaht.base.statistics import clopper_pearson
from eccaht.plants.incident.confidence import DrilledConfidence, clues_of
from eccaht.plants.incident.faults import KINDS, LARGEST, MOST_FAULTY, SIZED, SMALLEST
from eccaht.plants.incident.naming import DatedIncident
from eccaht.plants.model.model import Model

BANDS = ((SMALLEST, 2.0), (2.0, 5.0), (5.0, LARGEST))  # of sizes, in robust units
MOST_IN_ALARM = 0.2  # of the time without a fault, beyond which a watch tells little
_CHANCE = 0.001  # of so many false alarms, below which they are not put down to chance
MOST = 10**9  # drills or windows that a file may hold


@dataclass(frozen=True)
class Quiet:
    """Windows without a fault: how many, alarms in them, windows in alarm. begun: those with which alarms began."""

    windows: int
    alarms: int
    in_alarm: int
    begun: tuple[int, ...] = ()

    FIELDS = tuple(Field(name, (), int, high=MOST) for name in ("windows", "alarms", "in_alarm"))

    def check_restored(self, sizes: Sizes) -> None:  # noqa: ARG002
        if max(self.alarms, self.in_alarm) > self.windows:
            raise ValueError("its counts of drills are damaged: more alarms than windows")


class Cell(NamedTuple):
    """Drills of one kind and band of sizes: counts, and the median delay in windows of those found.

    right, at_alarm: those whose set was exactly right, with hindsight and at the alarm. onset, end: those that were
    dated within NEAR_ONSET and NEAR_END windows. named: faulty sensors that were named, of `sensors`. confident, wrong:
    confident answers, of all incidents that were reported, and how many of them were not right.
    """

    kind: str
    low: float
    high: float
    drills: int
    found: int
    right: int
    at_alarm: int
    onset: int
    end: int
    sensors: int
    named: int
    confident: int
    wrong: int
    delay: float

    def check_restored(self, sizes: Sizes) -> None:  # noqa: ARG002
        sizes_known = (self.low, self.high) in BANDS if self.kind in SIZED else not (self.low or self.high)
        right = max(self.right, self.at_alarm, self.onset, self.end) <= self.found <= self.drills
        if not sizes_known or not right or self.wrong > self.confident or self.named > self.sensors:
            raise ValueError("its counts of drills are damaged: they do not agree")

    @property
    def share(self) -> float:
        return self.found / self.drills if self.drills else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        return clopper_pearson(self.found, self.drills) if self.drills else (0.0, 1.0)


_CELL: Fields = (
    Field("kind", (), str, among=KINDS),
    *(Field(name, low=0.0, high=LARGEST) for name in ("low", "high")),
    *(Field(name, (), int, high=MOST) for name in Cell._fields[3:-1]),
    Field("delay", low=0.0, high=MOST),
)


@dataclass(frozen=True, repr=False)
class Counts:
    """All drills of a history. quiet: its windows without a fault. every: windows to a false alarm, as asked for."""

    cells: tuple[Cell, ...]
    quiet: Quiet
    every: float
    alpha: float

    FIELDS = (
        Part("cells", Cell, many=True, fields=_CELL),
        Part("quiet", Quiet),
        Field("every", low=1.0, high=1e15),
        Field("alpha"),
    )

    def __repr__(self) -> str:
        return f"Counts({self.line(None)})"

    def total(self, name: str) -> int:
        return sum(int(getattr(cell, name)) for cell in self.cells)

    @property
    def drills(self) -> int:
        return self.total("drills")

    @property
    def found_share(self) -> float | None:
        """Of all faults that were found, None without drills."""
        return self.total("found") / self.drills if self.drills else None

    @property
    def confident(self) -> tuple[int, int]:
        """Confident answers, and how many of them were wrong."""
        return self.total("confident"), self.total("wrong")

    @property
    def holds(self) -> bool:
        """Whether confident answers were wrong no more often than alpha says, but for chance."""
        stated, wrong = self.confident
        return not stated or clopper_pearson(wrong, stated)[0] <= self.alpha

    @property
    def false_alarms(self) -> tuple[int, float]:
        """Alarms in the history, and how many were asked for at most."""
        return self.quiet.alarms, self.quiet.windows / self.every

    def of_kind(self, kind: str) -> tuple[Cell, ...]:
        """The cells of a kind, small sizes first."""
        return tuple(cell for cell in self.cells if cell.kind == kind)

    @property
    def share_in_alarm(self) -> float:
        return self.quiet.in_alarm / self.quiet.windows if self.quiet.windows else 0.0

    def line(self, seconds: float | None, where: str = "your own history") -> str:
        return " ".join(self.sentences(seconds, where))

    def sentences(self, seconds: float | None, where: str = "your own history") -> tuple[str, str, str]:
        """For people; seconds: length of a window, None where rows have no times. where: the faults were put."""
        stated, wrong = self.confident
        alarms, asked = self.false_alarms
        windows = self.quiet.windows
        length = counted(windows, "window") if seconds is None else lasting(windows * seconds)
        level = confident(1.0 - self.alpha)
        were = "was" if wrong == 1 else "were"
        said = f"{wrong} of {counted(stated, 'answer')} with a confidence of {level} {were} wrong"
        return (
            f"On {where}: {self.total('found')} of {counted(self.drills, 'injected fault')} were found, "
            f"{self.total('right')} with exactly the right sensors.",
            f"{said if stated else f'No answer reached a confidence of {level}'}.",
            f"Without a fault: {counted(alarms, 'false alarm')} in {length} "
            f"({asked:.2g} expected), {percent(self.share_in_alarm)} of the time in alarm.",
        )

    @property
    def caution(self) -> str:
        """What to do where there were far more false alarms than chance allows at the rate asked for, else ""."""
        alarms, asked = self.false_alarms
        if not alarms or gammainc(alarms, asked) >= _CHANCE:  # P(at least so many), Poisson
            return ""
        few = f"{asked:.2g}"
        return (
            f"{counted(alarms, 'false alarm')} where {few} {'was' if few == '1' else 'were'} expected: each half of "
            "the history does what the other half never did, so alarms will be false more often than asked for. Leave "
            "out what was not normal operation, or calibrate on a longer history that has all operating points"
        )

    def check_restored(self, sizes: Sizes) -> None:  # noqa: ARG002
        if not 0.0 < self.alpha < 1.0 or len({cell[:2] for cell in self.cells}) != len(self.cells):
            raise ValueError("its counts of drills are damaged: each kind and size is counted once")


@dataclass(frozen=True)
class Drilled:
    """What drills counted, and how often sets are right by their clues.

    afterwards: with hindsight; standing: of these, sets of sensors that are all stuck, silent or out of range, and
    so wrong by themselves; at_alarm: as a watch names them. None where there were too few drills.
    """

    counts: Counts
    afterwards: DrilledConfidence | None
    standing: DrilledConfidence | None
    at_alarm: DrilledConfidence | None

    FIELDS = (
        Part("counts", Counts),
        *(Part(name, DrilledConfidence, optional=True) for name in ("afterwards", "standing", "at_alarm")),
    )

    def confidence(self, found: DatedIncident, kinds: Mapping[int, str], windows: int) -> float | None:
        """How often such an answer was exactly right in drills; None where no drill says, as of larger sets than any.

        kinds: of the named sensors. windows: that the incident lasted, or has lasted so far.
        """
        part = self.standing if found.stands_still else self.afterwards
        if part is None or len(found.naming.named) > MOST_FAULTY:
            return None
        return part.counted(clues_of(found.naming, kinds, found.weight, windows))


def kept(model: Model) -> Drilled | None:
    """What drills of a model counted, None if there were none; checked, since the file may come from anywhere."""
    if model.drilled is None:
        return None
    return built(Drilled, model.drilled, {}, what="drills")
