"""The settings of an experiment by the effective rank of their noise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from eccaht.arrays import Array, Index
from eccaht.covariance import effective_rank
from eccaht.paper.judging import short
from eccaht.paper.results import Results
from eccaht.paper.spec import Setting

EXTREME = 0.2  # share of the settings at either end of the ranks


def _kinds(settings: tuple[Setting, ...]) -> dict[str, list[int]]:
    """The settings of each family, the printed and the unit-variance mixture apart."""
    kinds: dict[str, list[int]] = {}
    for k, setting in enumerate(settings):
        unit = " of unit variance" if setting.arguments.get("unit_variance") else ""
        kinds.setdefault(setting.family.replace("_", " ") + unit, []).append(k)
    return kinds


def final_f1(results: Results, settings: Index, policy: str) -> Array:
    """F1 at the end, for each run the mean over some settings."""
    ends: Array = np.mean([results.f1(int(k), policy)[:, -1] for k in settings], axis=0)
    return ends


class RankEnds(NamedTuple):
    """The settings of one kind of noise in the order of their effective ranks."""

    kind: str
    order: Index
    ranks: Array

    @property
    def low(self) -> Index:
        """The fifth of lowest rank."""
        return self.order[: self._many]

    @property
    def high(self) -> Index:
        """The fifth of highest rank."""
        return self.order[-self._many :]

    @property
    def span(self) -> str:
        """The ranks of the lowest fifth."""
        return " to ".join(dict.fromkeys(short(float(self.ranks[k])) for k in (0, self._many - 1)))

    @property
    def _many(self) -> int:
        return max(1, int(EXTREME * len(self.order)))


def rank_ends(results: Results) -> Iterator[RankEnds]:
    """Each kind of noise of an experiment, by effective rank."""
    settings = results.experiment.settings
    for kind, members in _kinds(settings).items():
        with threadpool_limits(1):  # many small matrices: threads would only wait for each other
            ranks = np.array([effective_rank(settings[k].covariance()) for k in members])
        order = np.argsort(ranks)
        yield RankEnds(kind, np.array(members)[order], ranks[order])
