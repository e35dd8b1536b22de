"""The onset is the window in which the named sensors change their course; all that is unknown is summed over."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from eccaht.arrays import Array
from eccaht.incident import changes
from eccaht.incident.faults import Fault, inject
from eccaht.incident.judge import Judge
from eccaht.incident.onset import Onset, onset_of
from eccaht.incident.usual import simulated
from tests.incident.worlds import normal_of, quiet_worlds

K, T, START = 10, 400, 100
NEAR = 0.8 ** np.abs(np.subtract.outer(np.arange(K), np.arange(K)))
WORLDS = {"white": (0.0, np.inf), "memory": (0.9, np.inf), "heavy": (0.0, 4.0)}


@lru_cache(maxsize=4)
def judge_of(world: str) -> Judge:
    memory, tails = WORLDS[world]
    normal = normal_of(K, memory=memory, tails=tails, scatter=NEAR)
    return Judge(normal, quiet_worlds(normal, worlds=1))


def found(world: str, fault: Fault, since: int, stop: int, seed: int) -> Onset:
    """The onset of a fault, its sensors known, in a stretch from START to `stop`."""
    judge = judge_of(world)
    values = inject(simulated(judge.normal, T, seed), since, stop, fault, np.random.default_rng(seed), donor=0)
    judgement = judge(values, np.zeros(T), START, stop, number=len(fault.sensors))
    return onset_of(replace(judgement, named=fault.sensors), values, START)


def shares(onsets: list[Onset], since: int, near: int) -> tuple[float, float]:
    """How many are near the truth, and how many intervals hold it."""
    right = [abs(onset.best - since) <= near for onset in onsets]
    held = [onset.first <= since <= onset.last for onset in onsets]
    return float(np.mean(right)), float(np.mean(held))


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize(("since", "stop"), [(100, 130), (120, 140), (280, 300)])
def test_steps_begin_where_they_do(world: str, since: int, stop: int) -> None:
    sizes = (3.0, 5.0, 10.0)
    onsets = [found(world, Fault("step", (2, 6), size), since, stop, seed) for seed, size in enumerate(2 * sizes)]
    exact, held = shares(onsets, since, 0)
    assert exact >= 5 / 6
    assert held >= 5 / 6
    assert all(onset.first <= onset.best <= onset.last for onset in onsets)


@pytest.mark.parametrize("world", WORLDS)
def test_drifts_begin_within_a_fifth_of_their_length(world: str) -> None:
    since, stop = 130, 190
    onsets = [found(world, Fault("drift", (4,), 6.0), since, stop, seed) for seed in range(8)]
    near, held = shares(onsets, since, 12)
    assert near >= 7 / 8
    assert held >= 6 / 8


def test_intervals_hold_the_onset_of_small_steps_as_often_as_they_promise() -> None:
    onsets = [found("white", Fault("step", (5,), 1.0), 120, 150, seed) for seed in range(60)]
    _, held = shares(onsets, 120, 0)
    assert held > 0.95 - 4 * np.sqrt(0.05 * 0.95 / 60)
    assert any(onset.first < onset.last for onset in onsets)


@pytest.mark.parametrize("kind", ["stuck", "silent"])
def test_sensors_that_stand_still_do_so_since_their_first_repeated_or_missing_reading(kind: str) -> None:
    judge = judge_of("white")
    values = inject(simulated(judge.normal, T, 1), 117, 160, Fault(kind, (3,)), np.random.default_rng(0))
    judgement = judge(values, np.zeros(T), START, 160)
    assert judgement.standing == {3: kind}
    only = judgement.without([k for k in judgement.named if k != 3])
    assert onset_of(only, values, START) == Onset(117, 117, 117)


@pytest.mark.parametrize(("still", "moved", "onset"), [(117, 117, 117), (110, 130, 110), (140, 120, 120)])
def test_the_first_of_sensors_that_stand_still_and_that_move_counts(still: int, moved: int, onset: int) -> None:
    judge = judge_of("white")
    values = simulated(judge.normal, T, 2)
    values[still:170, 3] = values[still - 1, 3]
    values[moved:170, 8] += 6.0
    judgement = replace(judge(values, np.zeros(T), START, 170), named=(3, 8))
    assert judgement.standing == {3: "stuck"}
    assert onset_of(judgement, values, START).best == onset


def test_silent_windows_of_a_named_sensor_bear_no_evidence() -> None:
    judge = judge_of("white")
    values = simulated(judge.normal, T, 3)
    values[120:150, 2] += 4.0
    values[115:118, 2] = values[130:140, 2] = np.nan
    judgement = replace(judge(values, np.zeros(T), START, 150), named=(2,))
    assert onset_of(judgement, values, START).best == 120


# -- the likelihood ------------------------------------------------------------------------------------


def dense(memory: float, length: int) -> Array:
    """The covariance of a stationary course with this memory and unit variance."""
    return np.asarray(memory ** np.abs(np.subtract.outer(np.arange(length), np.arange(length))))


@pytest.mark.parametrize("memory", [0.0, 0.6])
@pytest.mark.parametrize("rough", [np.ones(6), np.linspace(0.5, 2.0, 6)])
def test_what_changes_has_the_density_of_a_mixture_of_gaussians(
    monkeypatch: pytest.MonkeyPatch, memory: float, rough: Array
) -> None:
    L = len(rough)
    x = np.random.default_rng(0).standard_normal((L, 1)) + 1.0
    monkeypatch.setattr(changes, "_OUTLIERS", 1e-300)
    found = changes._likelihoods(x, rough, memory)[:, 0]
    root = np.linalg.cholesky(dense(memory, L))
    time = np.arange(L)

    def density(covariance: Array) -> float:
        return float(stats.multivariate_normal(np.zeros(L), covariance).logpdf(x[:, 0]))

    null = density(root @ np.diag(rough**2) @ root.T + changes._OFFSET**2)
    for onset in range(L):
        after, terms = time >= onset, []
        before = changes._OFFSET**2 * np.outer(*2 * [root @ (np.linalg.solve(root, np.ones(L)) * ~after)])
        for spread in changes._SPREADS:
            wider = root @ np.diag(np.where(after, spread, 1.0) ** 2 * rough**2) @ root.T + before
            terms += [density(wider)] * (len(changes._SIZES) * (spread > 1.0))
            done = np.maximum(time - onset + 1.0, 0.0) / (L - onset)
            shapes = [1.0 * after]
            for knee in changes._KNEES:
                drift = np.where(done <= knee, done, knee * (1.0 + np.log(np.maximum(done, knee) / knee)))
                shapes.append(drift / drift[-1])
            terms += [density(wider + size**2 * np.outer(s, s)) for s in shapes for size in changes._SIZES]
        expected = np.logaddexp(null, np.logaddexp.reduce(terms) - np.log(len(terms)))
        assert_allclose(found[onset], expected, rtol=1e-8)
