"""Sensors without the part of their names that all of them have in common, so that lines and labels stay readable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eccaht.incident.answer import Answer

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

    def cut(name: str) -> str:
        return name.removeprefix(part)

    suspects = []
    for suspect in answer.sensors:
        told = tuple((cut(name), weight) for name, weight in suspect.reason.predictors)
        reason = replace(suspect.reason, predictors=told)
        suspects.append(replace(suspect, sensor=cut(suspect.sensor), reason=reason))
    brief = replace(
        answer,
        sensors=tuple(suspects),
        courses=tuple(replace(course, sensor=cut(course.sensor)) for course in answer.courses),
        rankings={
            name: tuple((cut(sensor), score) for sensor, score in ranking) for name, ranking in answer.rankings.items()
        },
        runner_up=None if answer.runner_up is None else cut(answer.runner_up),
    )
    return brief, part
