"""Which description of normal operation predicts best, and by how much: the choice that a model remembers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from eccaht.archive import check_keys
from eccaht.arrays import Array, as_number
from eccaht.model.normal import LEVELS, Level

Name = TypeVar("Name", bound=str)
PARTS = ("level", "memory", "shrink and tails")
MEMORIES = ("none", "ar")
STRETCHES = 20  # whose means say how sure a difference of scores is: neighbouring windows are alike
_MOST_ROWS = 100
_LONGEST = 40  # characters of a candidate
_MOST_DEGREES = 1e6


class Scored(NamedTuple):
    """One candidate of a part of the model.

    score: mean log density of the windows that were held back, in nats per window (of one sensor for the memory).
    error: standard error of the difference from the best candidate's score; 0 for the best.
    """

    part: str
    candidate: str
    score: float
    error: float
    chosen: bool


@dataclass(frozen=True)
class Choice:
    """What was chosen, and the scores of all candidates; tails are infinite for a Gaussian."""

    level: Level
    memory: str
    shrink: float
    tails: float
    rows: tuple[Scored, ...]

    def header(self) -> dict[str, Any]:
        """For a file or a JSON document, which know no infinity: the tails of a Gaussian are null."""
        tails = self.tails if np.isfinite(self.tails) else None
        rows = [list(row) for row in self.rows]
        return {"level": self.level, "memory": self.memory, "shrink": self.shrink, "tails": tails, "rows": rows}

    @property
    def said(self) -> str:
        """What was chosen, in one line.

        >>> Choice("local", "ar", 0.03, 5.0, ()).said
        'level local, memory ar, shrink 0.03, tails t with 5 degrees of freedom'
        """
        law = "gaussian" if np.isinf(self.tails) else f"t with {self.tails:g} degrees of freedom"
        return f"level {self.level}, memory {self.memory}, shrink {self.shrink:g}, tails {law}"

    def table(self) -> list[dict[str, Any]]:
        """The rows for JSON."""
        return [row._asdict() for row in self.rows]

    @staticmethod
    def build(header: Any) -> Choice:
        """The choice that a file tells of; whatever is not one is refused."""
        check_keys(header, {"level", "memory", "shrink", "tails", "rows"}, "choice")
        if header["level"] not in LEVELS or header["memory"] not in MEMORIES:
            raise ValueError("its choice of level and memory is damaged")
        shrink = check_share(as_number(header["shrink"], "shrink"))
        tails = check_degrees(np.inf if header["tails"] is None else as_number(header["tails"], "tails"))
        rows = header["rows"]
        if not isinstance(rows, list) or len(rows) > _MOST_ROWS:
            raise ValueError("its scores are damaged")
        return Choice(header["level"], header["memory"], shrink, tails, tuple(map(_row, rows)))


def check_share(shrink: float) -> float:
    """Return a share of shrinkage, or refuse it."""
    if not 0.0 <= shrink < 1.0:
        raise ValueError(f"shrink must be at least 0 and below 1, not {shrink:g}")
    return shrink


def check_degrees(tails: float) -> float:
    """Return degrees of freedom, infinite for a Gaussian, or refuse them."""
    if not (1.0 <= tails <= _MOST_DEGREES or tails == np.inf):
        raise ValueError(f"the degrees of freedom of the tails must be between 1 and {_MOST_DEGREES:g}, not {tails:g}")
    return tails


def _row(fields: Any) -> Scored:
    if not isinstance(fields, list) or len(fields) != len(Scored._fields):
        raise ValueError("its scores are damaged")
    part, candidate, score, error, chosen = fields
    texts = isinstance(candidate, str) and candidate.isprintable() and len(candidate) <= _LONGEST
    if part not in PARTS or not texts or type(chosen) is not bool or as_number(error, "an error") < 0:
        raise ValueError("its scores are damaged")
    return Scored(part, candidate, as_number(score, "a score"), float(error), chosen)


def pick(part: str, scores: Mapping[Name, Array], margin: float = 2.0) -> tuple[Name, list[Scored]]:
    """The first candidate that is not worse than the best by more than `margin` standard errors of the difference.

    scores: log density of the same windows, in the order of time, under each candidate; the simplest comes first.

    >>> pick("level", {"fixed": np.zeros(4), "local": np.array([2.0, 1.0, 2.0, 1.0])})[0]
    'local'
    """
    means = {name: float(score.mean()) for name, score in scores.items()}
    best = max(means, key=lambda name: means[name])
    errors = {name: _standard_error(scores[best] - score) for name, score in scores.items()}
    chosen = next(name for name in scores if means[name] >= means[best] - margin * errors[name])
    return chosen, [Scored(part, name, means[name], errors[name], name == chosen) for name in scores]


def _standard_error(differences: Array) -> float:
    """Of their mean, from the means of stretches."""
    number = min(STRETCHES, len(differences))
    if number < 2:
        return 0.0
    means = [stretch.mean() for stretch in np.array_split(differences, number)]
    return float(np.std(means, ddof=1) / np.sqrt(number))
