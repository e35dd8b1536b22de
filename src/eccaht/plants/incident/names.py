"""Sensors without the part of their names that all of them have in common, so that lines and labels stay readable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eccaht.plants.incident.answer import Answer, Incident

_LEAST = 8  # characters: a shorter common part is no burden
_SEPARATORS = "\\/.:|"


def common_part(names: Sequence[str]) -> str:
    """What all names begin with, up to a separator; empty if that is short.

    >>> common_part(["SITE 4/AREA 1/LT-101", "SITE 4/AREA 1/LT-102"]), common_part(["LT-101", "LT-102"])
    ('SITE 4/AREA 1/', '')
    """
    if len(names) < 2:
        return ""
    first, last = min(names), max(names)  # what these two share, all share
    same = next((k for k, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    end = max(first.rfind(mark, 0, same) for mark in _SEPARATORS) + 1
    return first[:end] if end >= _LEAST else ""


def shown_briefly(answer: Answer) -> tuple[Answer, str]:
    """The same answer about shorter names, and what was cut off all of them."""
    part = common_part([suspect.sensor for suspect in answer.sensors])
    if not part:
        return answer, ""
    incidents = tuple(_cut(incident, part) for incident in answer.incidents)
    return replace(answer, incidents=incidents, looked_at=_cut(answer.looked_at, part)), part


def _cut(incident: Incident, part: str) -> Incident:
    """The same incident without the common part of all names."""

    def cut(ranking: tuple[tuple[str, float], ...]) -> tuple[tuple[str, float], ...]:
        return tuple((name.removeprefix(part), number) for name, number in ranking)

    suspects = []
    for suspect in incident.sensors:
        reason = replace(suspect.reason, predictors=cut(suspect.reason.predictors))
        suspects.append(replace(suspect, sensor=suspect.sensor.removeprefix(part), reason=reason))
    return replace(
        incident,
        sensors=tuple(suspects),
        courses=tuple(replace(course, sensor=course.sensor.removeprefix(part)) for course in incident.courses),
        rankings={name: cut(ranking) for name, ranking in incident.rankings.items()},
    )
