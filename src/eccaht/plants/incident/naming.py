"""Which sensors are wrong in a stretch: grown one by one, each judged given those that remain.

The sensor with the most evidence (`model.local`) is named and set free: it is eliminated from the precisions, now and
in the window before, and the others are judged again without it. So three replayed sensors do not hide behind each
other. Sensors are ordered by evidence, and named as long as the next one is rarer than SHARE of the quiet stretches
allow any of K sensors to be. A sensor that is stuck, silent or out of range is wrong by itself and takes no part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.plants.model.local import Before, Local, System, evidence_of, without

SHARE = 0.05  # of quiet stretches in which any sound sensor may be named
MOST_GROWN = 20  # sensors beyond are ranked by what they would add
LONGEST = 300  # windows of a stretch that are looked at
_MOST = 500.0  # nats that an exponential can take


@dataclass(frozen=True, eq=False)
class Naming:
    """The sensors of a stretch.

    order: all of them, the most suspect first. named: those that are wrong, in that order. evidence: in nats, and
    rarity: how rare as much of it is in quiet stretches, given the sensors named before, (K,). needed: the rarity from
    which on a sensor is named. systems: by which each shows most, 0 own, 1 others, 2 both, (K,).
    beliefs: the probability of each to be wrong, given that one of them is, (K,).
    """

    order: tuple[int, ...]
    named: tuple[int, ...]
    evidence: Array
    rarity: Array
    needed: float
    systems: Index
    beliefs: Array

    @property
    def belief(self) -> float:
        """The probability of exactly the named set if sensors were independent, before drills say what it is worth."""
        inside = np.isin(np.arange(len(self.beliefs)), self.named)
        chances = np.where(inside, self.beliefs, 1.0 - self.beliefs)
        return float(np.exp(np.log(np.maximum(chances, 1e-300)).sum()))


def name_sensors(
    local: Local, before: Before, rows: Array, *, wrong: Sequence[int] = (), number: int | None = None
) -> Naming:
    """Name the sensors that are wrong in windows `rows`, (L, K), in robust units, after those `before`.

    wrong: sensors that are known to be; number: how many are wrong in all, if that is known.
    """
    rows = rows[:LONGEST]
    K = rows.shape[1]
    systems: tuple[System, ...] = local.systems(before, rows)
    for k in wrong:
        systems = without(systems, k)
    order = list(wrong)
    evidence, strongest, rarity = np.zeros(K), np.zeros(K, dtype=np.intp), np.zeros(K)
    needed = float(np.log(K / SHARE))
    named = list(wrong)
    growing = True
    while True:
        rest = np.setdiff1d(np.arange(K), order)
        by_system = evidence_of(systems)
        evidence[rest], strongest[rest] = by_system.max(axis=0)[rest], by_system.argmax(axis=0)[rest]
        rarity[rest] = local.rarity(evidence, len(rows))[rest]
        if not rest.size or len(order) >= min(len(wrong) + MOST_GROWN, K - 1):
            break
        k = int(rest[evidence[rest].argmax()])
        growing = growing and (len(named) < number if number is not None else rarity[k] > needed)
        if growing or (not named and number is None):
            named.append(k)  # something is wrong: the most suspect one, if no other
        order.append(k)
        systems = without(systems, k)
    order += rest[np.argsort(-evidence[rest], kind="stable")].tolist()
    beliefs = _beliefs(rarity, K, wrong, named)
    return Naming(tuple(order), tuple(named), evidence, rarity, needed, strongest, beliefs)


def unnamed(naming: Naming) -> Naming:
    """The same where it is not given that a sensor is wrong: none is named."""
    odds = _odds(naming.rarity)
    return replace(naming, named=(), beliefs=odds / (1.0 + odds))


def _odds(rarity: Array) -> Array:
    """The odds of each sensor to be wrong, by a chance of one in K before the stretch was seen.

    A rarity e is a p-value exp(-e); the likelihood ratio that it is worth is at most exp(e - 1) / e (Sellke, Bayarri
    and Berger 2001), which passes K about where a sensor is named.
    """
    e = np.minimum(rarity, _MOST)
    return np.asarray(np.exp(np.maximum(e - 1.0, 0.0)) / np.maximum(e, 1.0) / len(e))


def _beliefs(rarity: Array, K: int, wrong: Sequence[int], named: Sequence[int]) -> Array:
    """The beliefs, given that at least one sensor is wrong."""
    odds = _odds(rarity)
    beliefs = odds / (1.0 + odds)
    if not wrong and named:
        first = named[0]
        beliefs[first] = max(float(beliefs[first]), float(odds[first] / odds.sum()), 0.5)
    beliefs[list(wrong)] = 1.0 - 1.0 / K
    return np.asarray(beliefs)
