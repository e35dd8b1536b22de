"""A figure shows what the table of its experiment says, no more, and can be read."""

from dataclasses import replace
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from eccaht import effective_rank
from eccaht.base.presentation.style import saving_figure
from eccaht.base.randomness import rng_for
from eccaht.base.statistics import Delay, delay, estimate, first_reached, reached_for_good
from eccaht.research.experiments.comparison import compare
from eccaht.research.experiments.looks import shown_name
from eccaht.research.paper.catalogue import EXPERIMENTS
from eccaht.research.paper.experiment import Experiment, Setting
from eccaht.research.paper.figures import _log_ticks, draw
from eccaht.research.paper.results import Results

pytestmark = pytest.mark.usefixtures("few_resamples")

SEED = 5
POLICIES = ("ecc-aht", "random-sparse", "round-robin")
DRAWN = [experiment for experiment in EXPERIMENTS.values() if experiment.kind in ("curves", "sweep", "rank")]


def fabricated(experiment: Experiment, runs: int, *, seed: int = 0) -> Results:
    """Runs that rise from no hit to all, some only after the horizon and some not for good."""
    rng = np.random.default_rng(seed)
    hits = {}
    for k, setting in enumerate(experiment.settings):
        for name in experiment.policies:
            end = experiment.horizon * 2.0 ** rng.uniform(-4, 1, (runs, 1))
            ramp = np.arange(1, experiment.horizon + 1) / end + rng.normal(0, 0.03, (runs, experiment.horizon))
            hits[k, name] = (ramp * setting.n_anomalies).clip(0, setting.n_anomalies).astype(np.int32)
    return Results(experiment, SEED, hits)


def toeplitz(x: float = 0.0, **changes: Any) -> Setting:
    values = {"n_anomalies": 2, "shift": 2.0, "budget": 4.0, "label": f"rho {x:g}", **changes}
    return Setting(family="toeplitz", arguments={"K": 16, "rho": 0.5}, x=x, **values)


def sweep(hits: dict[str, list[list[list[int]]]]) -> Results:
    """By policy and x: hits of runs."""
    n, horizon = len(next(iter(hits.values()))), len(next(iter(hits.values()))[0][0])
    experiment = Experiment("s", "t", "sweep", tuple(map(toeplitz, range(n))), tuple(hits), horizon, "x")
    cells = {(k, name): np.array(rows, dtype=np.int32) for name, by_x in hits.items() for k, rows in enumerate(by_x)}
    return Results(experiment, SEED, cells)


def measured(results: Results, k: int, name: str, panel: int) -> Delay:
    curves = results.f1(k, name)
    times = [(first_reached, reached_for_good)[panel](curve) for curve in curves]
    return delay(times, curves.shape[1], rng=rng_for(SEED, "bootstrap"))


def lines(ax: Axes, gid: str) -> list[Line2D]:
    return [line for line in ax.lines if line.get_gid() == gid]


def points(line: Line2D) -> NDArray[np.float64]:
    return np.column_stack([np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)])


def bars(ax: Axes) -> list[LineCollection]:
    return [item for item in ax.collections if isinstance(item, LineCollection)]


@pytest.mark.parametrize(("low", "high"), [(2.1, 4.4), (0.6, 1.3), (3.2, 4.1), (30.0, 70.0)])
def test_counts_have_ticks_at_whole_numbers(low: float, high: float) -> None:
    ax = Figure().add_subplot()
    ax.set(yscale="log", ylim=(low, high))
    _log_ticks(ax, "y", counts=True)
    ticks = ax.get_yticks()
    assert len(ticks)
    assert all(tick == round(tick) for tick in ticks)


# -- curves --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", ["fig5a", "fig19"])
def test_curves_are_the_means_of_each_setting(id: str) -> None:
    results = fabricated(EXPERIMENTS[id], 4)
    figure = draw(results)
    assert len(figure.axes) == len(results.experiment.settings)
    for k, ax in enumerate(figure.axes):
        assert len([item for item in ax.collections if isinstance(item, PolyCollection)]) == len(ax.lines)
        named = {shown_name(name): name for name in results.experiment.policies}
        assert {str(line.get_label()).split("\n")[0] for line in ax.lines} == {*named}
        for line in ax.lines:
            steps, mean = points(line).T
            f1 = results.f1(k, named[str(line.get_label()).split("\n")[0]])
            assert_array_equal(mean, f1[:, steps.astype(int) - 1].mean(axis=0))


def test_the_legend_counts_runs_that_never_stay() -> None:
    results = fabricated(EXPERIMENTS["fig19"], 6)
    (legend,) = draw(results).legends
    said = dict(text.get_text().split("\n", 1) for text in legend.get_texts())
    for name in results.experiment.policies:
        never = [measured(results, k, name, 1).censored for k in (0, 1)]
        assert said[shown_name(name)] == (f"(a) {never[0]}/6, (b) {never[1]}/6 never" if any(never) else "all arrive")


# -- sweeps --------------------------------------------------------------------------------------------

ALL, SOME, NONE = [[0, 2, 2], [2, 2, 2]], [[0, 1, 2], [1, 1, 1]], [[0, 0, 1], [1, 1, 1]]
LOST = [[0, 2, 1], [2, 2, 2]]  # reached by both, kept by one


def test_means_and_intervals_of_a_sweep_are_those_of_the_table() -> None:
    results = fabricated(EXPERIMENTS["fig7"], 5)
    for panel, ax in enumerate(draw(results).axes):
        for name, line, bar in zip(results.experiment.policies, lines(ax, "mean"), bars(ax), strict=True):
            table = [measured(results, k, name, panel) for k in range(len(results.experiment.settings))]
            expected = [(setting.x, row.mean) for setting, row in zip(results.experiment.settings, table, strict=True)]
            assert_array_equal(points(line), expected)
            ends = [segment[:, 1] for segment in bar.get_segments()]
            assert_allclose(ends, [row.interval for row in table if row.interval is not None])


def test_hollow_markers_stand_exactly_where_runs_were_cut_off() -> None:
    results = sweep({"ecc-aht": [ALL, SOME, NONE, LOST], "round-robin": [ALL, ALL, ALL, ALL]})
    first, for_good = draw(results).axes
    for ax, expected in ((first, [(1, 3.0), (2, 3.0)]), (for_good, [(1, 3.0), (2, 3.0), (3, 2.0)])):
        hollow, none = lines(ax, "censored")
        assert points(hollow).tolist() == [list(point) for point in expected]
        assert hollow.get_markerfacecolor() == "white"
        assert not len(points(none))
        filled, every = lines(ax, "observed")
        assert sorted([*points(hollow)[:, 0], *points(filled)[:, 0]]) == [0, 1, 2, 3]
        assert points(every)[:, 0].tolist() == [0, 1, 2, 3]
        (horizon,) = lines(ax, "horizon")
        assert {*np.asarray(horizon.get_ydata()).tolist()} == {3}
        assert len(bars(ax)[0].get_segments()) == 3  # where all are cut off there is no interval


# -- effective rank ------------------------------------------------------------------------------------


def test_final_f1_stands_over_the_effective_rank_of_each_form() -> None:
    experiment = EXPERIMENTS["fig17"]
    settings = experiment.settings[::6]
    results = fabricated(replace(experiment, settings=settings, policies=POLICIES[:1], horizon=30), 4)
    kinds: list[Any] = ["shannon", "participation"]
    for ax, kind in zip(draw(results).axes, kinds, strict=True):
        assert ax.get_xscale() == "log"
        labels = [f"ecc-aht, {form}" for form in ("as printed", "unit variance")]
        assert [line.get_label() for line in lines(ax, "mean")] == labels
        for line, bar in zip(lines(ax, "mean"), bars(ax), strict=True):
            name, form = str(line.get_label()).split(", ")
            members = [k for k, setting in enumerate(settings) if setting.label == form]
            x = [effective_rank(settings[k].covariance(), kind=kind) for k in members]
            final = [estimate(results.f1(k, name)[:, -1], rng=rng_for(SEED, "bootstrap")) for k in members]
            rows = sorted((rank, row.mean, *(row.interval or ())) for rank, row in zip(x, final, strict=True))
            assert_array_equal(points(line), [row[:2] for row in rows])
            assert_allclose([segment[:, 1] for segment in bar.get_segments()], [row[2:] for row in rows])


# -- all -----------------------------------------------------------------------------------------------


def inside(figure: Figure) -> list[Text]:
    """Every text that is seen."""
    found: list[Text] = [*figure.texts, *figure.legends[0].get_texts()]  # the title is among the first
    for ax in figure.axes:
        found += [ax.xaxis.label, ax.yaxis.label, ax.title, ax._left_title]  # type: ignore[attr-defined]
        for axis in (ax.xaxis, ax.yaxis):
            low, high = axis.get_view_interval()
            ticks = axis.get_major_ticks() + axis.get_minor_ticks()
            found += [tick.label1 for tick in ticks if low <= tick.get_loc() <= high and tick.label1.get_visible()]
    return [text for text in found if text.get_text() and text.get_visible()]


def check_readable(figure: Figure) -> None:
    figure.draw_without_rendering()
    boxes: list[tuple[str, Bbox]] = [(text.get_text(), text.get_window_extent()) for text in inside(figure)]
    for text, box in boxes:
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1 + 1, text
        assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1 + 1, text
    assert not [(a, b) for k, (a, box) in enumerate(boxes) for b, other in boxes[:k] if box.overlaps(other)]
    for ax in figure.axes:
        assert not figure.legends[0].get_window_extent().overlaps(ax.get_window_extent())
        assert ax.get_window_extent().width > 0.3 * figure.bbox.width
        assert ax.get_window_extent().height > 0.3 * figure.bbox.height


def test_real_runs_are_drawn_and_written_the_same_way_twice(tmp_path: Any) -> None:
    settings = tuple(toeplitz(float(shift), shift=float(shift)) for shift in (1, 2, 3))
    hits = {}
    for k, setting in enumerate(settings):
        records = compare(setting.problem(), POLICIES, runs=3, horizon=30, seed=SEED)
        hits.update({(k, name): found for name, found in records.hits.items()})
    for kind in ("curves", "sweep", "rank"):
        results = Results(
            Experiment("e", "a test", kind, settings[:2], POLICIES[: 1 if kind == "rank" else 3], 30, "shift"),
            SEED,
            hits,
        )
        if kind == "curves":
            once, again = (
                [file.read_bytes() for file in saving_figure(draw(results), tmp_path / name)] for name in "ab"
            )
        else:  # files differ by nothing but what is drawn
            once, again = (rendered(draw(results)) for _ in range(2))
        assert once == again


def rendered(figure: Figure) -> list[bytes]:
    file = BytesIO()
    figure.savefig(file, format="png")
    return [file.getvalue()]
