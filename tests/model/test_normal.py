"""What normal operation says of a single sensor."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose

from tests.incident.worlds import normal_of


def test_the_usual_deviation_has_score_one_unless_the_spread_is_larger() -> None:
    normal = normal_of(3, memory=0.6)
    assert_allclose(normal.scores(normal.usual_deviation[None, :]), 1.0)
    knots = normal.knots.copy()
    knots[:, 1] *= 1e-9
    still = replace(normal, knots=knots)
    assert_allclose(still.usual_deviation, [1.0, normal.spread[1], 1.0])
    assert np.isfinite(still.scores(still.usual_deviation[None, :])).all()
