"""The detector of scikit-learn keeps its conventions, but for those that rows in order of time cannot keep."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import ArrayLike
from sklearn.utils.estimator_checks import check_estimator

from eccaht import Detector

EXPECTED = {
    "check_outliers_fit_predict": "it asks for outliers among the rows of the fit, which are normal operation here",
    "check_outliers_train": "it asks for outliers among the rows of the fit, which are normal operation here",
    "check_methods_sample_order_invariance": "rows are in order of time: another order is another course of events",
    "check_methods_subset_invariance": "what a row shows depends on the rows before it",
}


class Repeating(Detector):
    """The checks fit 10 to 30 rows where 40 are needed: these are repeated."""

    def fit(self, X: ArrayLike, y: object = None) -> Detector:
        try:
            return super().fit(X, y)
        except ValueError as error:
            if "are the fewest" not in str(error) or len(rows := np.asarray(X)) == 1:
                raise
        return super().fit(np.tile(rows, (-(-48 // len(rows)), 1)))


def test_it_passes_the_checks_of_scikit_learn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about checks that are skipped or expected to fail
        results: list[dict[str, Any]] = check_estimator(Repeating(), expected_failed_checks=EXPECTED, on_skip=None)
    failed = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert failed == set(EXPECTED)  # a check that passes by now is to be taken off the list


def test_a_step_is_found_and_quiet_rows_are_not() -> None:
    rows = np.random.default_rng(0).standard_normal((700, 4))
    detector = Detector(false_alarm_every=5000.0).fit(rows[:500])
    rows[650:, 2] += 8.0
    found = detector.predict(rows[500:])
    assert (found[:150] == 1).all()
    assert found[150] == -1
    np.testing.assert_array_equal(detector.decision_function(rows[500:]) < 0, found == -1)
    assert detector.model_.identify(rows[500:]).named[0] == "x2"


def test_a_model_has_the_names_of_the_frame() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((400, 3)), columns=["flow", "level", "heat"])
    detector = Detector().fit(frame)
    assert detector.model_.names == ("flow", "level", "heat")
    frame.iloc[350:, 1] += 8.0
    assert detector.predict(frame)[360] == -1
    assert detector.model_.identify(frame).named == ("level",)


@pytest.mark.parametrize("values", [pd.date_range("2024-01-01", periods=60), ["on"] * 60])
def test_a_column_that_does_not_hold_numbers_is_called_by_name(values: object) -> None:
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((60, 2)), columns=["flow", "level"])
    with pytest.raises(ValueError, match="column 'odd'"):
        Detector().fit(frame.assign(odd=values))


def test_a_frame_without_columns_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="X has no columns"):
        Detector().fit(pd.DataFrame())
