"""The picture of a search shows what the sensors read, and nothing in it lies on anything else."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from numpy.testing import assert_allclose

from eccaht import Problem, Simulator, families, make_policy
from eccaht.base.presentation.style import figure_style
from eccaht.plants.incident.picture import draw_search, read
from eccaht.plants.incident.search import Finding, investigate
from eccaht.plants.replay import Replay

START = np.datetime64("2024-05-01T08:00:00")
K = 24


def posed(n: int | tuple[int, int], shift: float = 3.0) -> Problem:
    names = [f"TT-{100 + k}" for k in range(K)]
    return Problem(families.toeplitz(K, 0.8), shift=shift, n_anomalies=n, budget=4.0, mean=0.5, names=names)


def searched(
    problem: Problem,
    anomalies: list[int],
    windows: int,
    *,
    vectors: bool = False,
    gaps: float = 0.0,
    minutes: int = 1,
    outlier: float = 0.0,
) -> Finding:
    x = Simulator(problem, anomalies=anomalies, seed=1).sample(windows)
    x[np.random.default_rng(2).random(x.shape) < gaps] = np.nan
    x[windows // 2] += outlier
    times = START + np.arange(windows) * np.timedelta64(minutes, "m")
    policy = make_policy("joint", problem, stopping=None)
    return investigate(policy, Replay(list(zip(times, x, strict=True)), problem), vectors=vectors)


def overlapping(figure: Figure) -> list[tuple[str, str]]:
    """Pairs of texts that lie on each other, ticks without those outside the axes."""
    figure.draw_without_rendering()
    texts: list[Text] = []
    for ax in figure.axes:
        texts += [*ax.texts, ax.xaxis.label, ax.yaxis.label, ax.xaxis.get_offset_text()]
        texts += [child for child in ax.get_children() if isinstance(child, Text)]
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            texts += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    shown = {id(text): text for text in texts if text.get_visible() and text.get_text().strip()}
    boxes = [(text.get_text(), text.get_window_extent()) for text in shown.values()]
    return [(a, b) for k, (a, one) in enumerate(boxes) for b, other in boxes[:k] if one.overlaps(other)]


CASES: dict[str, tuple[Problem, list[int], int, dict[str, Any]]] = {
    "one named": (posed(1), [7], 12, {}),
    "ten named": (posed(10), list(range(0, 20, 2)), 12, {}),
    "none named": (posed((0, 2)), [], 12, {}),
    "one window": (posed(2), [3, 9], 1, {}),
    "values missing": (posed(3), [3, 9, 10], 15, {"vectors": True, "gaps": 0.2}),
    "weeks": (posed(2), [3, 9], 125, {"minutes": 240, "gaps": 0.05}),
    "far off": (posed(2), [3, 9], 12, {"outlier": 1e5}),
}


@cache
def case_of(name: str) -> tuple[Problem, Finding]:
    problem, anomalies, windows, options = CASES[name]
    return problem, searched(problem, anomalies, windows, **options)


@pytest.mark.parametrize("case", ["ten named", "none named", "one window", "weeks", "far off"])
def test_nothing_lies_on_anything_else(case: str) -> None:
    problem, finding = case_of(case)
    with figure_style():
        assert overlapping(draw_search(problem, finding, 60.0)) == []


@pytest.mark.parametrize("case", ["one named", "ten named", "values missing"])
def test_the_readings_of_the_named_sensors_are_drawn_over_the_band_of_normal_ones(case: str) -> None:
    problem, finding = case_of(case)
    *_, plain, alone = draw_search(problem, finding, 60.0).axes
    rows = {entry.window: entry.values for entry in finding.entries}
    expected = {tuple(np.round((np.array(list(rows.values()))[:, k] - 0.5), 6)) for k in finding.anomalies}
    lines = plain.lines[: len(finding.names)]
    assert {str(tuple(np.round(np.asarray(line.get_ydata()), 6))) for line in lines} == {*map(str, expected)}
    for axes in (plain, alone):
        assert {text.get_text() for text in axes.texts} == {*finding.names}
        assert axes.patches[0].get_extents().width > 0  # the band


def test_where_no_sensor_is_named_the_nearest_are_shown() -> None:
    problem, finding = case_of("none named")
    assert finding.names == ()
    *_, plain, _ = draw_search(problem, finding, 60.0).axes
    assert len(plain.texts) == 2
    assert "nearest" in plain.get_title(loc="left") + plain.get_title()


def test_what_is_left_alone_is_the_conditional_deviation() -> None:
    """Against the joint Gaussian: with means of the named sensors moved by 3, minus what the others predict."""
    problem, finding = case_of("values missing")
    S, sensors = problem.covariance.dense(), finding.anomalies
    readings = read(problem, finding.entries, sensors)
    seen = 0
    for window, entry in enumerate(finding.entries):
        x = entry.values - 0.5
        others = [k for k in range(K) if k not in sensors and not np.isnan(x[k])]
        for place, k in enumerate(sensors):
            joint = [k, *others]
            precision = np.linalg.inv(S[np.ix_(joint, joint)])  # row k: conditional mean and variance given the rest
            alone = (precision[0] @ x[joint]) / np.sqrt(precision[0, 0])
            assert_allclose(readings.alone[window, place], alone, rtol=1e-8)
            seen += not np.isnan(alone)
    assert 20 < seen < 45
    assert np.nanmean(readings.alone) > 3.0  # the shift of 3 stands out of noise that is not shared


def test_normal_windows_have_deviations_of_size_one() -> None:
    (first, *_), normal = case_of("one named")[1].entries, Simulator(posed((0, 2)), anomalies=[], seed=3).sample(2000)
    entries = [replace(first, window=k, values=row) for k, row in enumerate(normal)]
    readings = read(posed(2), entries, np.array([3, 9]))
    for values in (readings.plain, readings.alone):
        assert_allclose(values.std(axis=0), 1.0, atol=0.06)
        assert_allclose(values.mean(axis=0), 0.0, atol=0.09)
