"""A comparison is what the library gives policy by policy, whoever else runs and on however many processes."""

import pickle
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from numpy.testing import assert_array_equal
from numpy.typing import NDArray
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

from eccaht import Problem, Simulator, families, make_policy, policy_names
from eccaht.base.randomness import rng_for
from eccaht.base.statistics import bca_interval
from eccaht.research.experiments import comparison, looks as module_of_looks
from eccaht.research.experiments.comparison import Records, Run, compare, refusal, run_policy, summarise
from eccaht.research.experiments.figures import draw_comparison
from eccaht.research.experiments.looks import looks
from eccaht.research.experiments.workers import unpacked
from eccaht.streams.covariance import Dense
from eccaht.streams.policies.catalogue import BUILT_IN
from eccaht.streams.run.world import Reading
from tests.checks.covariances import EXAMPLES

pytestmark = pytest.mark.usefixtures("few_resamples")

RUNS, HORIZON, SEED = 3, 25, 4


def problem(size: int = 16) -> Problem:
    # a full matrix: its products are where the number of threads would show
    return Problem(Dense(families.toeplitz(size, 0.7).dense()), shift=4.0, n_anomalies=2, budget=3.0)


def applicable(setting: Problem) -> list[str]:
    return [name for name in policy_names() if refusal(name, setting) is None]


def records(hits: dict[str, list[list[int]]], n_anomalies: int = 2) -> Records:
    counts = {name: np.array(rows, dtype=np.int32) for name, rows in hits.items()}
    return Records(n_anomalies, SEED, counts, {name: np.full(len(rows), 2e-6) for name, rows in hits.items()})


@pytest.fixture(scope="module")
def everything() -> Records:
    return compare(problem(), applicable(problem()), runs=RUNS, horizon=HORIZON, seed=SEED, jobs=1)


@pytest.mark.parametrize("name", applicable(problem()))
def test_hits_are_those_of_the_library(name: str, everything: Records) -> None:
    for run in range(RUNS):
        world = Simulator(problem(), seed=(SEED, run), names=[name])
        truth = {"anomalies": world.anomalies.tolist()} if name == "oracle-design" else {}
        policy = make_policy(name, problem(), seed=(SEED, run), stopping=None, **truth)
        expected = []
        for _ in range(HORIZON):
            c = policy.ask()
            policy.tell(c, world.measure(c))
            expected.append(len({*policy.decision.tolist()} & {*world.anomalies.tolist()}))
        assert everything.hits[name][run].tolist() == expected


def test_no_policys_numbers_depend_on_the_others(everything: Records) -> None:
    rows = {row.policy: row for row in summarise(everything)}
    for name in applicable(problem()):
        alone = compare(problem(), [name], runs=RUNS, horizon=HORIZON, seed=SEED)
        assert_array_equal(alone.hits[name], everything.hits[name])
        (row,) = summarise(alone)
        assert row[:-1] == rows[name][:-1]


def test_no_number_depends_on_the_number_of_processes() -> None:
    setting = problem(128)  # large enough for the linear algebra to use several threads if it may
    names = applicable(setting)
    one, two = (compare(setting, names, runs=2, horizon=30, seed=SEED, jobs=jobs) for jobs in (1, 2))
    assert list(one.hits) == list(two.hits) == names
    assert all(one.hits[name].tobytes() == two.hits[name].tobytes() for name in names)
    assert [row[:-1] for row in summarise(one)] == [row[:-1] for row in summarise(two)]


def test_linear_algebra_keeps_to_one_thread_while_policies_run(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []

    def counted(*arguments: Any) -> Run:
        threads.extend(library["num_threads"] for library in threadpool_info())
        return run_policy(*arguments)

    monkeypatch.setattr(comparison, "run_policy", counted)
    compare(problem(), ["ecc-aht"], runs=1, horizon=2)
    assert {*threads} == {1}


def test_the_exact_policies_are_not_run_on_where_nothing_would_change(monkeypatch: pytest.MonkeyPatch) -> None:
    read, readings = Simulator.read, []

    def counted(world: Simulator, c: NDArray[np.float64], **how: bool) -> Reading:
        readings.append(read(world, c, **how))
        return readings[-1]

    monkeypatch.setattr(Simulator, "read", counted)
    hits = compare(problem(), ["joint"], runs=2, horizon=500, seed=SEED).hits["joint"]
    assert 0 < len(readings) < 200  # of 1000
    assert (hits[:, 100:] == 2).all()


@pytest.mark.parametrize("build", EXAMPLES.values(), ids=EXAMPLES)
def test_a_worker_gets_the_same_problem(build: Any) -> None:
    covariance = build()
    if covariance.size < 2:
        return
    shift = np.linspace(1.0, 2.0, covariance.size)
    names = [f"stream {k}" for k in range(covariance.size)]
    sent = Problem(covariance, shift=shift, n_anomalies=1, budget=2.0, mean=0.5, names=names)
    got = unpacked(pickle.dumps(sent))
    assert_array_equal(got.covariance.dense(), covariance.dense())
    assert type(got.covariance) is type(covariance)
    assert_array_equal(got.shift, shift)
    assert_array_equal(got.mean, sent.mean)
    assert (got.n_anomalies, got.budget, got.names) == (1, 2.0, tuple(names))


@pytest.mark.parametrize("jobs", [1, 2])
def test_progress_counts_every_run_once(jobs: int) -> None:
    reported: list[int] = []
    compare(problem(), ["ecc-aht", "round-robin"], runs=5, horizon=3, jobs=jobs, progress=reported.append)
    assert sum(reported) == 10
    assert min(reported) > 0


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        ([], {}, "no policy to compare"),
        ("ecc-aht", {}, "must be a list"),
        (["ecc-aht", "ecc-aht"], {}, "'ecc-aht' is named twice"),
        (["ecc-ath"], {}, "did you mean 'ecc-aht'"),
        (["ecc-aht"], {"runs": 0}, "runs must be a whole number of at least 1"),
        (["ecc-aht"], {"horizon": 2.5}, "horizon must be a whole number"),
        (["ecc-aht"], {"jobs": -1}, "jobs must be a whole number"),
        (["ecc-aht"], {"seed": -1}, "seed must be a whole number"),
        (["ecc-aht"], {"options": {"regularize": -1.0}}, "'ecc-aht' does not apply: regularize must not be negative"),
    ],
)
def test_bad_requests_are_refused_before_any_work(
    names: list[str], options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "_run", lambda *_: pytest.fail("work began before the input was checked"))
    with pytest.raises(ValueError, match=message):
        compare(problem(), names, **options)


@pytest.mark.parametrize("error", [ValueError, ArithmeticError, ZeroDivisionError])
def test_a_failure_says_which_run_of_which_policy(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> float:
        raise error("out of luck")

    monkeypatch.setattr(Simulator, "read", fail)
    with pytest.raises(error, match=r"ecc-aht, run 0, .*out of luck"):
        compare(problem(), ["ecc-aht"])


# -- what it comes to ----------------------------------------------------------------------------------


def test_rows_hold_first_and_last_passing_final_f1_and_time() -> None:
    (row,) = summarise(records({"a": [[0, 2, 1, 2], [2, 2, 2, 2], [1, 1, 1, 2]]}))
    assert row.first.times == [2, 1, 4]
    assert row.for_good.times == [4, 1, 4]
    assert (row.first.censored, row.for_good.censored) == (0, 0)
    assert row.first.mean == pytest.approx(7 / 3)
    assert row.for_good.mean == 3.0
    interval = bca_interval([2.0, 1.0, 4.0], rng=rng_for(SEED, "bootstrap"))
    assert row.first.interval == tuple(interval)
    assert row.final_f1 == (1.0, (1.0, 1.0))
    assert row.final_hits == [2, 2, 2]
    assert row.microseconds_per_step == pytest.approx(2.0)


def test_runs_that_never_get_there_are_censored() -> None:
    some, none = summarise(records({"some": [[0, 2, 1], [2, 2, 2]], "none": [[1, 1, 1], [0, 0, 1]]}))
    assert some.first.times == [2, 1]
    assert some.for_good.times == [None, 1]
    assert (some.for_good.censored, some.for_good.mean) == (1, 2.0)
    assert none.first == ([None, None], 3.0, None)
    assert none.final_f1.mean == 0.5


# -- the picture ---------------------------------------------------------------------------------------


def fabricated(horizon: int, runs: int, names: list[str]) -> Records:
    draws = np.random.default_rng(1).random((len(names), runs, horizon))
    hits = (draws * np.linspace(1, 6, horizon)).clip(max=5).astype(int)
    return records({name: rows.tolist() for name, rows in zip(names, hits, strict=True)}, n_anomalies=5)


def test_lines_are_mean_f1_and_bands_their_intervals() -> None:
    data = fabricated(40, 6, ["ecc-aht", "round-robin"])
    (ax,) = draw_comparison(data).axes
    bands = [item for item in ax.collections if isinstance(item, PolyCollection)]
    assert len(bands) == len(ax.lines) == 2
    for line, band in zip(ax.lines, bands, strict=True):
        f1 = data.f1(str(line.get_label()).split()[0])
        assert_array_equal(line.get_xdata(), np.arange(1, 41))
        assert_array_equal(line.get_ydata(), f1.mean(axis=0))
        low, high = bca_interval(f1, rng=rng_for(SEED, "bootstrap"))
        corners: NDArray[np.float64] = np.asarray(band.get_paths()[0].vertices)
        for step, ends in enumerate(zip(low, high, strict=True), 1):
            seen = corners[corners[:, 0] == step, 1]
            assert (seen.min(), seen.max()) == ends


def test_of_many_policies_the_best_are_drawn() -> None:
    data = fabricated(40, 3, list(policy_names()))
    (ax,) = draw_comparison(data).axes
    best_first = sorted(data.hits, key=lambda name: -data.hits[name].mean())
    assert [str(line.get_label()).split()[0] for line in ax.lines] == best_first[:6]


def test_every_policy_has_a_look_of_its_own_even_without_colours() -> None:
    known = module_of_looks._KNOWN
    assert len({look.form for look in known.values()}) == len(known)
    assert {*BUILT_IN} <= {*known}
    for own in ([], ["mine", "my-second", "my-third"]):
        found = looks([*policy_names(), *own])
        assert len({look.form for look in found.values()}) == len(found)
        assert [look for name, look in found.items() if name not in own] == [*looks(policy_names()).values()]
