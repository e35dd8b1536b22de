"""A window counts for what its rows are worth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eccaht import Problem, make_policy
from eccaht.plants.data.windows import Windows
from eccaht.plants.incident.search import Finding, investigate
from eccaht.plants.model.follow import Follower
from eccaht.plants.model.model import Model
from eccaht.plants.replay import ALIKE, Replay
from tests.plants.incident.search_plants import NAMES, calibrated, incident, prepared, readings, write


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return calibrated(tmp_path_factory.mktemp("plant"))


def pose(model: Model, shift: float = 1.0) -> Problem:
    return model.problem(shift=shift, n_anomalies=2, budget=4.0)


def searched(model: Model, windows: Windows, *, vectors: bool = False, policy: str = "joint") -> Finding:
    problem = pose(model)
    return investigate(make_policy(policy, problem), Replay(windows, problem), vectors=vectors)


@pytest.mark.parametrize("how", ["one row in six", "the first half", "whole"])
def test_searches_in_thinned_windows_err_no_more_than_they_say(model: Model, tmp_path: Path, how: str) -> None:
    sure, wrong = 0, 0
    for seed in range(16):
        values, truth = incident(720, seed, shift=0.7)
        rng = np.random.default_rng(seed)
        kept = np.arange(720) % 6 < 3 if how == "the first half" else rng.random(720) < 1 / 6
        problem = pose(model, 0.7)
        replay = Replay(prepared(model, tmp_path, values, kept), problem)
        finding = investigate(make_policy("joint", problem, seed=seed), replay, vectors=how == "whole")
        assert finding.confidence is not None
        if finding.confidence.probability >= 0.95:
            sure += 1
            wrong += list(finding.names) != truth
    assert sure >= 13
    assert wrong <= 3  # of 16 at 5 %, more in one of 140 counts


def test_full_windows_give_what_they_gave_without_counting(model: Model, tmp_path: Path) -> None:
    windows = prepared(model, tmp_path, incident(360, 3)[0])
    uncounted = replace(windows, rows=None, flat=None, model=None)
    for vectors in (False, True):
        one, other = (searched(model, part, vectors=vectors) for part in (windows, uncounted))
        assert one.confidence == other.confidence
        for a, b in zip(one.entries, other.entries, strict=True):
            assert (a.reading, a.noise, a.lead, a.inflation) == (b.reading, b.noise, b.lead, 1.0)
            assert np.array_equal(a.scores, b.scores)


def test_readings_of_a_short_window_are_as_noisy_as_they_say(model: Model, tmp_path: Path) -> None:
    normal = prepared(model, tmp_path, readings(12_000, 5), np.arange(12_000) % 6 < 2)
    problem = pose(model)
    replay, c = Replay(normal, problem, per_window=2), np.eye(8)
    pairs = []
    while (one := replay.read(c[0] - 0.5 * c[1])) is not None and (two := replay.read(c[0] + c[2])) is not None:
        noise = [np.sqrt(r.inflation * problem.noise_variance(r.weights)) for r in (one, two)]
        pairs.append([(r.value - r.weights @ problem.mean) / n for r, n in zip((one, two), noise, strict=True)])
    z = np.array(pairs)
    assert len(z) == 2000
    assert z.var(axis=0).max() < 1.1
    assert z.var(axis=0).min() > 0.8
    assert abs(np.corrcoef(z.T)[0, 1]) < 0.08  # independent, though they are of one window


def test_a_short_window_observed_whole_is_its_exact_likelihood(model: Model, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    windows = prepared(model, tmp_path, readings(60, 6), rng.random(60) < 0.5)
    problem = pose(model)
    window = Replay(windows, problem).whole()
    assert window is not None
    assert window.excess is not None
    S = problem.covariance.dense() + window.excess.dense()
    r, z = window.values - problem.mean, np.isin(np.arange(8), [1, 4]) * problem.shift
    policy = make_policy("joint", problem, stopping=None)
    policy.observe(window.values, excess=window.excess.dense())
    assert policy.likelihood is not None
    ratio = policy.likelihood.log_likelihood(np.array([[1, 4]]))[0]
    assert ratio == pytest.approx(r @ np.linalg.solve(S, z) - 0.5 * z @ np.linalg.solve(S, z), rel=1e-9)


def test_the_report_says_that_windows_count_for_less(model: Model, tmp_path: Path) -> None:
    values, truth = incident(720, 4)
    windows = prepared(model, tmp_path, values, np.arange(720) % 6 == 0)
    finding = searched(model, windows)
    assert list(finding.names) == truth
    for entry in finding.entries:
        usual = pose(model).noise_variance(entry.weights)
        assert entry.noise == pytest.approx(np.sqrt(entry.inflation * usual))
        assert entry.inflation > 3.0


def test_policies_that_cannot_weigh_leave_short_windows_out(model: Model, tmp_path: Path) -> None:
    values, _ = incident(720, 4)
    thin = np.arange(720) % 6 == 0
    thin[360:] = True
    windows = prepared(model, tmp_path, values, thin)
    problem = Problem(np.eye(8), shift=1.0, n_anomalies=2, budget=4.0, names=NAMES)
    policy = make_policy("hds", problem, stopping=20)
    finding = investigate(policy, Replay(windows, problem))
    assert finding.n_short == finding.n_skipped == 60
    assert all(entry.inflation <= ALIKE for entry in finding.entries)
    with pytest.raises(ValueError, match="equally noisy"):
        policy.tell(np.eye(8)[0], 0.0, inflation=2.0)
    replay = Replay(windows, problem)
    replay.measure(np.eye(8)[0])
    assert (replay.n_windows, replay.n_short) == (61, 60)


@pytest.mark.parametrize("name", ["joint", "ecc-aht", "ttts", "joint-pair"])
def test_inflation_is_a_noisier_problem(name: str) -> None:
    problem = Problem(np.eye(5) + 0.5, shift=1.0, n_anomalies=2, budget=2.0)
    noisier = problem.replace(covariance=4.0 * (np.eye(5) + 0.5))
    one, other = make_policy(name, problem, seed=1), make_policy(name, noisier, seed=1)
    for k in range(5):
        c = np.eye(5)[k] - 0.5 * np.eye(5)[k - 1]
        one.tell(c, 0.3 * k, inflation=4.0)
        other.tell(c, 0.3 * k)
    np.testing.assert_allclose(one.scores, other.scores, rtol=1e-9)
    np.testing.assert_allclose(one.beliefs, other.beliefs, rtol=1e-9)
    for wrong in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="inflation"):
            one.tell(c, 0.0, inflation=wrong)


def test_the_unfinished_window_of_a_growing_file_counts_for_less(model: Model, tmp_path: Path) -> None:
    path = write(tmp_path / "grow.csv", readings(15, 3))  # two windows and a half
    replay = Replay(Follower(model, path, timeout=0.01, poll=0.01), pose(model), model=model)
    seen = []
    while (reading := replay.read(np.eye(8)[0])) is not None:
        seen.append(reading.inflation)
    assert seen[:2] == [1.0, 1.0]
    assert seen[2] > 1.3
