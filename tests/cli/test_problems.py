"""What users write is read as they mean it, or refused in one line that says how to write it."""

import pytest

from eccaht.cli.problems import parse_number, parse_shift
from eccaht.streams.shifts import UnknownShift


@pytest.mark.parametrize(("text", "meant"), [(" 5 ", 5), ("0-8", (0, 8)), ("4-4", 4), ("007", 7)])
def test_a_number_or_a_range(text: str, meant: int | tuple[int, int]) -> None:
    assert parse_number(text) == meant


NO_NUMBERS = ["", "five", "2.5", "-3", "1-", "-", "1-2-3", "1,2", "²", "1" * 5000, "8-2", "0", "0-0"]


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_other_numbers_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^the number of anomalies.*$"):
        parse_number(text)


SIZES = {
    "3": 3.0,
    "-2.5": -2.5,
    "unknown: 0.5 ": UnknownShift(0.5),
    "unknown:3:either": UnknownShift(3.0),
    "unknown:3:negative": UnknownShift(3.0, "negative"),
}


@pytest.mark.parametrize("text", SIZES)
def test_a_size_or_its_likely_size(text: str) -> None:
    assert parse_shift(text) == SIZES[text]


@pytest.mark.parametrize(
    "text",
    [
        *("", "three", "nan", "inf", "3:positive", "0", "-0.0", "unknown", "unknown:", "unknown:0", "unknown:-3"),
        *("unknown:nan", "unknown:positive", "unknown:3:", "unknown:3:up", "unknown:3:positive:4"),
    ],
)
def test_other_shifts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^.*unknown:SCALE.*$"):
        parse_shift(text)
