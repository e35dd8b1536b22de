"""The page states the limits that the checks use, and a remedy is printed only if it helped when it was tried."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from eccaht.base.arrays import Array
from eccaht.base.presentation.text import percent
from eccaht.plants.diagnose import diagnose
from eccaht.plants.diagnose import view as limits
from eccaht.plants.diagnose.view import ALPHA, VERDICTS, VerdictLimits, actual_error
from tests.plants.diagnose.worlds import ar1, model_of, white

PAGE = (Path(__file__).parents[3] / "docs" / "explanation" / "diagnosis.md").read_text(encoding="utf-8")


def row(check: str) -> tuple[str, str]:
    """What the table of the page says is ok, and what is not fit."""
    cells = next(line for line in PAGE.splitlines() if line.startswith(f"| {check} |")).split("|")
    return cells[3].strip(), cells[4].strip()


def test_the_page_has_the_limits_of_the_checks() -> None:
    assert row("enough windows") == (f"from {limits.WINDOWS[0]:g}", f"below {limits.WINDOWS[1]:g}")
    assert row("independent windows") == (f"up to {limits.TIME[0]:g}", f"above {limits.TIME[1]:g}")
    slow = f"above {percent(limits.DRIFT[1])} in half of the sensors"
    assert row("drift") == (f"up to {percent(limits.DRIFT[0])}", slow)
    assert row("stable covariance") == (f"up to {limits.STABLE[0]:g}", f"above {limits.STABLE[1]:g}")
    assert row("normal readings")[1] == f"above {percent(limits.NORMAL[1])}"
    assert row("near-duplicate sensors") == (f"up to {limits.DUPLICATE[0]:g}", f"above {limits.DUPLICATE[1]:g}")
    powers = [f"$10^{round(np.log10(limit))}$" for limit in limits.CONDITION]
    assert row("condition number") == (f"up to {powers[0]}", f"above {powers[1]}")
    assert row("effective rank")[0] == f"from {percent(limits.RANK)} of the sensors"
    assert row("stuck sensors") == (f"up to {percent(limits.STUCK[0])}", f"above {percent(limits.STUCK[1])}")
    assert row("imputed readings") == (f"up to {percent(limits.IMPUTED[0])}", f"above {percent(limits.IMPUTED[1])}")
    assert f"far from normal ($1 - W'$ above {limits.NORMAL[0]:g})" in PAGE
    assert limits.LATE == 0.5
    assert row("expected measurements")[1] == "more than half do not"


def test_the_errors_that_the_page_states_are_computed() -> None:
    line = next(line for line in PAGE.splitlines() if line.startswith(r"\alpha^{1/f}"))
    assert f"{ALPHA:g} \\text{{ becomes }}" in line
    pairs = re.findall(r"(0\.\d\d) \\text\{ at \} (?:f = )?(\d(?:\.\d)?)", line)
    assert len(pairs) == 3
    for error, factor in pairs:
        assert actual_error(float(factor)) == pytest.approx(float(error), abs=0.005)


def test_numbers_of_numpy_are_judged_as_others() -> None:
    for number in (0.5, 2.0, 5.0):
        assert VerdictLimits(1.0, 3.0).verdict(np.float64(number)) == VerdictLimits(1.0, 3.0).verdict(number)


def test_every_stated_limit_is_where_the_verdict_changes() -> None:
    for model in (model_of(white(300, 8)), model_of(ar1(white(4200, 8), 0.6))):
        for check in diagnose(model).checks:
            if check.number is None or check.name in ("drift", "normal readings", "effective rank"):
                continue
            first, second = (float(x) for x in re.findall(r"(?:up to|from|above|below) ([\d.e+]+)", check.limits))
            if "%" in check.limits:
                first, second = first / 100, second / 100
            beyond = [check.number > x if first < second else check.number < x for x in (first, second)]
            assert check.verdict == VERDICTS[sum(beyond)], check.name


def slowed(seed: int) -> Array:
    """Noise with a memory of minutes over a level that wanders for hours: no window averages that out."""
    fast, slow = ar1(white(20_200, 8, seed=seed), 0.9), ar1(white(20_200, 8, seed=seed + 10), 0.999)
    return np.sqrt(0.7) * fast + np.sqrt(0.3) * slow


def joined(values: Array, m: int) -> Array:
    return values[: len(values) // m * m].reshape(-1, m, values.shape[1]).mean(axis=1)


@pytest.mark.parametrize(("memory", "minutes"), [(0.8, 30), (0.95, 120)])
def test_a_window_that_is_suggested_was_tried(memory: float, minutes: int) -> None:
    values = ar1(white(20_000, 8), memory)
    (found,) = [check for check in diagnose(model_of(values)).checks if check.name == "independent windows"]
    length = f"{minutes}min" if minutes < 60 else f"{minutes // 60}h"
    assert f"`--window {length}`" in found.action
    assert diagnose(model_of(joined(values, minutes))).verdict == "ok"


def test_no_window_is_suggested_that_does_not_help() -> None:
    for seed in range(2):
        (found,) = [check for check in diagnose(model_of(slowed(seed))).checks if check.name == "independent windows"]
        assert found.verdict == "not fit"
        assert "No length of the window would help" in found.action
        assert "--window" not in found.action


def test_sensors_are_left_out_only_where_that_helps() -> None:
    values = white()
    values[:, 3] = np.exp(2.0 * values[:, 3])
    results = {check.name: check for check in diagnose(model_of(values)).checks}
    assert "`--exclude S03`" in results["normal readings"].action
    all_skewed = {check.name: check for check in diagnose(model_of(np.exp(1.5 * white() / white().std(axis=0)))).checks}
    assert all_skewed["normal readings"].verdict == "not fit"
    assert "--exclude" not in all_skewed["normal readings"].action  # the dozen that it would leave out are too few


def test_advice_costs_nothing_where_none_is_wanted() -> None:
    model = model_of(ar1(white(4200, 8), 0.6))
    plain, advised = diagnose(model, advise=False), diagnose(model)
    assert [check.verdict for check in plain.checks] == [check.verdict for check in advised.checks]
    assert plain.error == advised.error > 0.05
    assert "independent windows" in plain.caution
