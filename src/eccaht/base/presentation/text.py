"""Numbers, lengths, lists and tables as plain text."""

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any

_PLAIN = 1e-4, 1e7  # numbers between are written without an exponent
_DIGITS = 1e-4  # of a number is all that is shown of it


def percent(share: float) -> str:
    """A share, with one digit below ten percent.

    >>> percent(0.0), percent(0.0004), percent(0.123), percent(1.0)
    ('0 %', '0.04 %', '12 %', '100 %')
    """
    x = 100.0 * share
    return f"{x:.0f} %" if x == 0.0 or x >= 9.5 else f"{x:.1g} %"


def confident(probability: float) -> str:
    """A probability rounded down, and never to certainty.

    >>> confident(0.9731), confident(0.99999), confident(0.95)
    ('97.3 %', 'above 99.9 %', '95 %')
    """
    if probability > 0.9990001:
        return "above 99.9 %"
    return "below 0.1 %" if probability < 0.001 else f"{math.floor(1000.0 * probability + 1e-9) / 10.0:g} %"


def rounded(x: float) -> str:
    """A mean of counts: one decimal place below a hundred.

    >>> rounded(9.33), rounded(8.0), rounded(123.4)
    ('9.3', '8', '123')
    """
    return f"{x:.0f}" if x >= 99.95 else f"{x:.1f}".removesuffix(".0")


def lasting(seconds: float, show: Callable[[float], str] = rounded) -> str:
    """A length of time in the unit in which it is at least two; show: writes the number.

    >>> lasting(90.0), lasting(560.0)
    ('90 seconds', '9.3 minutes')
    """
    for unit, size in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2.0 * size:
            return f"{show(seconds / size)} {unit}"
    return f"{show(seconds)} seconds"


def counted(number: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "window"), counted(2, "window")
    ('1 window', '2 windows')
    """
    return f"{number} {what}{'' if number == 1 else 's'}"


def listed(names: Sequence[str], most: int = 6) -> str:
    """The first few names, and how many more there are.

    >>> listed(["a", "b"]), listed(list("abcdefgh"))
    ('a, b', 'a, b, c, d, e, f and 2 more')
    """
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def belief(probability: float) -> str:
    """A probability with three places, and never certainty.

    >>> belief(0.98765), belief(1.0), belief(1e-9)
    ('0.988', '>0.999', '<0.001')
    """
    return ">0.999" if probability >= 0.9995 else "<0.001" if probability < 0.0005 else f"{probability:.3f}"


def amount(evidence: float) -> str:
    """Evidence with one place, or a word where there is none.

    >>> amount(57.23), amount(float("inf"))
    ('57.2', 'unknown')
    """
    return f"{evidence:.1f}" if math.isfinite(evidence) else "unknown"


def in_digits(x: float, unit: float, sign: str = "") -> str:
    """A number with as many places as show two digits of `unit`, which is what matters of it.

    >>> in_digits(61.23456, 0.31), in_digits(61.23456, 31.0), in_digits(-0.04, 1.0, "+"), in_digits(2.5e9, 3e7)
    ('61.23', '61', '+0.0', '2.5e+09')
    """
    if not math.isfinite(x):
        return "-"
    least, most = _PLAIN
    if not (math.isfinite(unit) and least <= abs(unit) < most and abs(x) < most):
        return f"{x:{sign}.3g}"
    places = max(0, 1 - math.floor(math.log10(abs(unit))))
    return f"{round(x, places) + 0.0:{sign}.{places}f}"  # never -0.0


def sized(value: float, low: float, high: float) -> str:
    """A size with its sign and its interval.

    >>> sized(3.2134, 2.94, 3.48)
    '+3.21 (+2.94 to +3.48)'
    """
    if not math.isfinite(value):
        return ""
    reach = 0.5 * (high - low)
    if not (math.isfinite(reach) and reach > 0.0):
        return in_digits(value, value, "+")
    unit = max(reach, _DIGITS * abs(value))
    return f"{in_digits(value, unit, '+')} ({in_digits(low, unit, '+')} to {in_digits(high, unit, '+')})"


def deviations(z: float, sign: str = "") -> str:
    """How many standard deviations, without the sign unless it is asked for.

    >>> deviations(-0.84), deviations(-0.84, "+"), deviations(212.7), deviations(3.2e7), deviations(float("nan"))
    ('0.8', '-0.8', '213', '3e+07', '-')
    """
    if not math.isfinite(z):
        return "-"
    shown, size = z if sign else abs(z), abs(z)
    return f"{shown:{sign}.1f}" if size < 99.95 else f"{shown:{sign}.0f}" if size < 99999.5 else f"{shown:{sign}.0e}"


def joined(names: Sequence[str], last: str = "and") -> str:
    """A few names as in a sentence.

    >>> joined(["a"]), joined(["a", "b"]), joined(["a", "b", "c"]), joined(["a", "b"], "or")
    ('a', 'a and b', 'a, b and c', 'a or b')
    """
    return f" {last} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def shortened(name: str, most: int) -> str:
    """The beginning and the end of a long name; names of one plant differ in their ends more often.

    >>> shortened("PLANT/AREA 5/LT-101", 9), shortened("Pressure", 9)
    ('PLA…T-101', 'Pressure')
    """
    if len(name) <= most:
        return name
    head = (most - 1) * 2 // 5
    return f"{name[:head]}…{name[len(name) - (most - 1 - head) :]}"


def all_shortened(names: Sequence[str], most: int) -> list[str]:
    """Names of at most so many characters, longer where two would look the same.

    >>> all_shortened(["Pressure of pump 11 (bar)", "Pressure of pump 12 (bar)", "Flow"], 9)
    ['Pres…1 (bar)', 'Pres…2 (bar)', 'Flow']
    """
    for length in range(most, max(map(len, names), default=0) + 1):
        shown = [shortened(name, length) for name in names]
        if len(set(shown)) == len(set(names)):
            return shown
    return list(names)


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as aligned lines.

    >>> columns([("sensor", "n"), ("a", "12")])
    ['sensor  n', 'a       12']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def explained(error: BaseException) -> str:
    """The kind of an error and its message, in one line.

    >>> explained(KeyError("rho"))
    "KeyError: 'rho'"
    """
    return f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ")


def did_you_mean(name: object, known: Iterable[str], *, otherwise: str = "", cutoff: float = 0.4) -> str:
    """How a message about an unknown name goes on: the nearest known one, or what is to be said otherwise.

    >>> did_you_mean("tmep", ["temp", "flow"]), did_you_mean("xyz", ["temp"])
    (": did you mean 'temp'?", '')
    """
    near = get_close_matches(str(name), list(known), n=1, cutoff=cutoff)
    return f": did you mean {near[0]!r}?" if near else otherwise


def unknown(name: object, known: Iterable[str], what: str, *, cutoff: float = 0.4) -> ValueError:
    """The error for a name that is none of the known ones, which it lists.

    >>> unknown("fgi1", ["fig1", "fig2"], "experiment")
    ValueError("unknown experiment 'fgi1': did you mean 'fig1'? known: fig1, fig2")
    """
    known = list(known)
    hint = did_you_mean(name, known, otherwise=":", cutoff=cutoff)
    return ValueError(f"unknown {what} {name!r}{hint} known: {', '.join(known)}")


class Bar:
    """What is done now and how much of it; silent unless it is given a bar to update."""

    def __init__(self, update: Callable[..., object] = lambda **_: None) -> None:
        self._update = update

    def stage(self, name: str, share: float | None = None) -> None:
        """Show the present stage and the share of all work that is done."""
        self._update(description=name, **({} if share is None else {"completed": share}))

    def total(self, many: int, what: str = "searches") -> None:
        self._update(total=many, completed=0, description=what)

    def advance(self, finished: int = 1) -> None:
        """Count those that were finished since the last call."""
        self._update(advance=finished)


@contextmanager
def shown_progress(stage: str = "reading", total: float | None = None, *, shown: bool = True) -> Iterator[Bar]:
    """A bar with the time left on a terminal, in percent if the total is 1.0; nothing where errors go to a file."""
    if not shown or not sys.stderr.isatty() or find_spec("rich") is None:
        yield Bar()
        return
    from rich import progress
    from rich.console import Console

    counted = progress.TaskProgressColumn() if total == 1.0 else progress.MofNCompleteColumn()
    stage_now = progress.TextColumn("{task.description}, time left")
    columns = (progress.BarColumn(), counted, stage_now, progress.TimeRemainingColumn())
    options: dict[str, Any] = {"console": Console(stderr=True), "transient": True}
    options["redirect_stdout"] = sys.stdout.isatty()  # what goes to a file meanwhile must arrive there
    # pieces of work may differ in length: with a short memory of the speed the time left would swing
    with progress.Progress(*columns, **options, speed_estimate_period=120) as bar:
        task = bar.add_task(stage, total=total)
        yield Bar(lambda **now: bar.update(task, **now))
