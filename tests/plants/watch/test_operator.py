"""What operators order, and that a file keeps it."""

from __future__ import annotations

import numpy as np
import pytest

from eccaht.plants.watch.events import ActiveAlarm
from eccaht.plants.watch.operator import Operator

NOON = np.datetime64("2024-05-01T12:00", "us")
FAULT = ActiveAlarm(NOON, NOON, NOON, NOON, ("b",), ("step",), (30.0,), (1.0,))


def test_a_new_normal_is_taken_off_from_then_on_and_kept() -> None:
    operator = Operator("abc")
    operator.call_normal(FAULT, {"b": 1.5})
    operator.shelve("c", NOON)
    operator.acknowledge(FAULT)
    again = Operator.build(operator.header(), "abc")
    assert again.header() == operator.header()
    assert again.acknowledged == NOON
    x = np.array([1.0, 2.0, 3.0])
    assert again.apply(x, NOON - 1).tolist()[:2] == [1.0, 0.5]
    assert np.isnan(again.apply(x, NOON - 1)[2])
    assert again.apply(x, NOON).tolist() == [1.0, 0.5, 3.0]
    assert x.tolist() == [1.0, 2.0, 3.0]


def test_orders_that_make_no_sense_are_refused() -> None:
    operator = Operator(["flow", "level"])
    with pytest.raises(ValueError, match=r"no sensor 'flw' to shelve.*'flow'"):
        operator.shelve("flw", NOON)
    with pytest.raises(ValueError, match="no alarm to acknowledge"):
        operator.acknowledge(None)
    with pytest.raises(ValueError, match="no alarm whose state"):
        operator.call_normal(None, {})
    with pytest.raises(ValueError, match="orders"):
        Operator.build(operator.header() | {"offsets": [0.0]}, operator.names)
