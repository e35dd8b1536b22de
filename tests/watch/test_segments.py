"""Segments of a history side by side show what one pass over it shows."""

from dataclasses import replace

import numpy as np
import pytest

from eccaht.model.normal import Level
from eccaht.watch import history
from eccaht.watch.history import law_of, looks_of
from eccaht.watch.streams import Streams
from tests.watch.plants import plant, readings, scaled


@pytest.mark.parametrize("level", ["fixed", "local"])
def test_segments_show_what_one_pass_shows(level: Level, monkeypatch: pytest.MonkeyPatch) -> None:
    normal = plant()[0].normal
    assert normal is not None
    normal = replace(normal, level=level)
    values = scaled(readings(1500, 1))
    moments = np.zeros(len(values))
    law = law_of(normal, values, moments)
    side_by_side = looks_of(normal, law, values, moments, before=normal.width)
    monkeypatch.setattr(history, "_SEGMENTS", 1)
    one_pass = looks_of(normal, law, values, moments, before=normal.width)
    for name, part, expected in zip(one_pass._fields, side_by_side, one_pass, strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-4, atol=1e-4, err_msg=name)


def test_a_kept_state_goes_on_bit_for_bit_and_a_damaged_one_is_refused() -> None:
    model, _, rule = plant()
    assert model.normal is not None
    normal = replace(model.normal, level="local")
    values = scaled(readings(300, 2))
    first = Streams(normal, rule.law)
    for x in values[:200]:
        first.update(x, 0.0)
    second = Streams(normal, rule.law)
    second.restore({name: array.copy() for name, array in first.state().items()})
    for x in values[200:]:
        for part, expected in zip(second.update(x, 0.0), first.update(x, 0.0), strict=True):
            np.testing.assert_array_equal(part, expected)
    damaged = {name: array.copy() for name, array in first.state().items()}
    damaged["onsets"][0] = 10_000
    with pytest.raises(ValueError, match="damaged"):
        second.restore(damaged)
