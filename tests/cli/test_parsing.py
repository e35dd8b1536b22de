"""What users write is read as they mean it, or refused in one line that says how to write it."""

from __future__ import annotations

import pytest

from eccaht.cli.parsing import parse_number, parse_shift
from eccaht.streams.shifts import UnknownShift


@pytest.mark.parametrize(
    ("text", "meant"),
    [("1", 1), ("12", 12), (" 5 ", 5), ("0-8", (0, 8)), ("2-3", (2, 3)), ("0-1", (0, 1)), ("4-4", 4), ("007", 7)],
)
def test_a_number_or_a_range(text: str, meant: int | tuple[int, int]) -> None:
    assert parse_number(text) == meant


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "whole number"),
        ("five", "whole number"),
        ("2.5", "whole number"),
        ("-3", "whole number"),
        ("1-", "whole number"),
        ("-", "whole number"),
        ("1-2-3", "whole number"),
        ("1,2", "whole number"),
        ("²", "whole number"),
        ("1" * 5000, "whole number"),
        ("8-2", "write 2-8"),
        ("0", "nothing to find"),
        ("0-0", "nothing to find"),
    ],
)
def test_other_numbers_are_refused(text: str, hint: str) -> None:
    with pytest.raises(ValueError, match=hint) as refused:
        parse_number(text)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("3", 3.0),
        ("-2.5", -2.5),
        ("1e-1", 0.1),
        ("unknown:3", UnknownShift(3.0)),
        ("unknown: 0.5 ", UnknownShift(0.5)),
        ("unknown:3:either", UnknownShift(3.0)),
        ("unknown:3:positive", UnknownShift(3.0, "positive")),
        ("unknown:3:negative", UnknownShift(3.0, "negative")),
    ],
)
def test_a_size_or_its_likely_size(text: str, meant: float | UnknownShift) -> None:
    read = parse_shift(text)
    assert read == meant
    assert type(read) is type(meant)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "unknown:SCALE"),
        ("three", "unknown:SCALE"),
        ("nan", "unknown:SCALE"),
        ("inf", "unknown:SCALE"),
        ("3:positive", "unknown:SCALE"),
        ("0", "invisible"),
        ("-0.0", "invisible"),
        ("unknown", "likely size"),
        ("unknown:", "likely size"),
        ("unknown:0", "likely size"),
        ("unknown:-3", "likely size"),
        ("unknown:nan", "likely size"),
        ("unknown:positive", "likely size"),
        ("unknown:3:", ":positive"),
        ("unknown:3:up", ":positive"),
        ("unknown:3:positive:4", ":positive"),
    ],
)
def test_other_shifts_are_refused(text: str, hint: str) -> None:
    with pytest.raises(ValueError, match=hint) as refused:
        parse_shift(text)
    assert "\n" not in str(refused.value)
