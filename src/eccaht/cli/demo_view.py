"""The demo on a terminal: streams, beliefs and weights, redrawn at every measurement."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterable, Sequence

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from eccaht.research.paper.fig1 import BUDGET, HORIZON, N_ANOMALIES, STREAMS, Moment

WIDTH, HEIGHT = 80, 24  # what the view needs
_BELIEF, _WEIGHT = 26, 11  # cells of a belief of 1, and of the largest weight on either side
_LEAD = 20
_POSITIVE, _NEGATIVE, _NAMED = "#D55E00", "#0072B2", "#009E73"  # Okabe & Ito, safe for colour-blind eyes
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def fits(console: Console) -> bool:
    """Can this terminal show the view?"""
    return (
        console.is_terminal
        and not console.is_dumb_terminal
        and console.encoding.startswith("utf")
        and console.width >= WIDTH
        and console.height >= HEIGHT
    )


def show(moments: Iterable[Moment], console: Console, delay: float) -> list[Moment]:
    """Play the search: each measurement first as it is chosen, then with what its reading changed."""
    seen: list[Moment] = []
    with Live(console=console, auto_refresh=False, transient=True) as live:
        for now in moments:
            if seen:
                live.update(frame(now, seen[-1]), refresh=True)
                time.sleep(delay / 2)
                live.update(frame(now, now, seen[-1]), refresh=True)
                time.sleep(delay / 2)
            seen.append(now)
    return seen


def frame(asked: Moment, known: Moment, before: Moment | None = None) -> Group:
    """Draw the measurement of `asked` over the beliefs of `known`; its reading too if the moment `before` is given."""
    rows = [_row(k, asked, known, _role(k, asked)) for k in range(STREAMS)]
    words = textwrap.wrap(explain(asked), WIDTH - 2)
    lines = [*words[:2], *[""] * (2 - len(words)), "It reads ..." if before is None else conclude(asked, before)]
    key = Text.assemble(
        ("● ", _NAMED), "named set    ", ("■ ", _POSITIVE), "added    ", ("■ ", _NEGATIVE), "subtracted"
    )
    return Group(
        _title(f"measurement {asked.step} of {HORIZON}"),
        _header("weight in the measurement"),
        *rows,
        *(Text(line) for line in lines),
        _lead_bar(known),
        key,
    )


def verdict(last: Moment, lines: Sequence[str]) -> Group:
    """Draw the end: the final beliefs beside the truth, and the summary."""
    rows = [_row(k, None, last, _truth(k, last)) for k in range(STREAMS)]
    title = _title(f"after {last.step} measurements")
    return Group(title, _header("the truth"), *rows, *(Text(line) for line in lines))


def explain(moment: Moment) -> str:
    """Say in words what the measurement does."""
    pair = (moment.champion, moment.challenger)
    helpers = [k for k in np.flatnonzero(np.abs(moment.weights) > 1e-9).tolist() if k not in pair]
    text = f"Measurement {moment.step} weighs stream {pair[0]} against stream {pair[1]}"
    if not helpers:
        return f"{text}."
    return f"{text} and subtracts the noise they share with {streams(helpers)}."


def conclude(now: Moment, before: Moment) -> str:
    """Say in words what the reading says about the pair."""
    gain = now.scores - before.scores
    evidence = float(gain[now.champion] - gain[now.challenger])
    for_, against = now.champion, now.challenger
    if evidence < 0:
        for_, against = against, for_
    return f"It reads {now.reading:+.2f}: evidence {abs(evidence):.1f} for stream {for_} over stream {against}."


def streams(which: Sequence[int]) -> str:
    """Name streams in a sentence.

    >>> streams([3]), streams([2, 6, 11])
    ('stream 3', 'streams 2, 6 and 11')
    """
    if len(which) == 1:
        return f"stream {which[0]}"
    return f"streams {', '.join(map(str, which[:-1]))} and {which[-1]}"


# -- pieces of the picture -----------------------------------------------------------------------------


def _title(right: str) -> Text:
    left = f"Which {N_ANOMALIES} of {STREAMS} streams are anomalous?"
    return Text(left + right.rjust(WIDTH - 1 - len(left)), style="bold")


def _header(last: str) -> Text:
    return Text(f" stream  {'belief':<{_BELIEF + 8}}{last}", style="dim")


def _row(k: int, asked: Moment | None, known: Moment, note: Text) -> Text:
    named = k in known.decision
    belief = float(known.beliefs[k])
    row = Text.assemble(
        ("● " if named else "  ", _NAMED),
        (f"{k:>4}   ", "bold" if named else ""),
        (_bar(belief, _BELIEF), _NAMED if named else ""),
        f" {belief:.2f}   ",
    )
    if asked is not None:
        row.append_text(_signed_bar(float(asked.weights[k])))
    return row.append_text(note)


def _role(k: int, asked: Moment) -> Text:
    role = {asked.champion: "champion", asked.challenger: "challenger"}.get(k, "")
    return Text(f" {role}", style="bold")


def _truth(k: int, last: Moment) -> Text:
    named, anomalous = k in last.decision, k in last.anomalies
    if named:
        return Text("anomalous: found", style=_NAMED) if anomalous else Text("nominal: named wrongly", style=_POSITIVE)
    return Text("anomalous: missed", style=_POSITIVE) if anomalous else Text("")


def _bar(share: float, cells: int) -> str:
    """A bar from the left, exact to an eighth of a cell."""
    whole, rest = divmod(round(min(max(share, 0.0), 1.0) * cells * 8), 8)
    return ("█" * whole + (_EIGHTHS[rest] if rest else "")).ljust(cells)


def _signed_bar(weight: float) -> Text:
    """A bar to either side of a line, exact to half a cell."""
    # the two ends of a pair share the budget, so that half of it is about the largest weight there can be
    whole, rest = divmod(round(min(abs(weight) / (BUDGET / 2), 1.0) * _WEIGHT * 2), 2)
    left = ("▐" * rest + "█" * whole if weight < 0 else "").rjust(_WEIGHT)
    right = ("█" * whole + "▌" * rest if weight > 0 else "").ljust(_WEIGHT)
    return Text.assemble((left, _NEGATIVE), ("│", "dim"), (right, _POSITIVE))


def _lead_bar(known: Moment) -> Text:
    share = known.lead / known.threshold
    done = "  it would stop here" if share >= 1 else ""
    return Text.assemble(
        f"Lead of the set {known.lead:5.1f}  ",
        (_bar(share, _LEAD), _NAMED),
        ("│", "dim"),
        f" gap rule stops at {known.threshold:.1f}{done}",
    )
