"""An answer as one self-contained HTML page, for light and dark screens, wide and narrow."""

from collections.abc import Iterator, Sequence

from eccaht.base.presentation.document import Badge, Block, Drawing, Grid, Heading, Items, Paragraph, Text, html
from eccaht.base.presentation.style import TEXT_WIDTH, embedded_svg
from eccaht.plants.answer import Answer
from eccaht.plants.incident.investigate import OUTSIDE
from eccaht.plants.show import picture
from eccaht.plants.show.words import (
    LEGEND,
    PLACES,
    changed_plant,
    checks,
    confidence,
    evidence,
    headline,
    incidents,
    reasons,
    reminder,
    runner_up,
    table,
    undecided,
    what_to_do,
)
from eccaht.version import __version__

_COLOURS = {
    "#000000": "var(--ink)",
    picture.READ: "var(--read)",
    picture.OUTSIDE: "var(--mark)",
    picture.BAND: "var(--band)",
    picture.PREDICTED: "var(--dim)",
    picture.ONSET: "var(--ink)",
}
_CAPTION = (
    "What the named sensors read, in their own units, around the incident (dotted lines: its onset and its end; "
    "hatched: where the onset may be, 95 %). The grey band holds 95 % of the readings that the other sensors predict; "
    "rings are readings outside it. Below them the strongest sensor that was not named, for comparison, and the "
    "evidence, which raises an alarm at 0."
)
_OTHERS = 10  # sensors in the table that are not named
_WIDEST = 10_000  # characters: names are not shortened


def write(answer: Answer) -> str:
    """The page as HTML."""
    return html(headline(answer), _blocks(answer), dark=True, contents=False)


def _blocks(answer: Answer) -> Iterator[Block]:
    yield Paragraph([Badge(*_verdict(answer)), f" {confidence(answer)}"])
    yield from map(Paragraph, checks(answer))
    yield from map(Paragraph, undecided(answer))
    yield from map(Paragraph, (*what_to_do(answer), *reminder(answer)))
    for caution in (text for text in answer.cautions if not changed_plant(answer) or OUTSIDE not in text):
        yield Paragraph([Badge("CAUTION", "partly"), f" {caution}"])
    if several := incidents(answer):
        yield Heading("Incidents", "incidents")
        yield Paragraph(several[0])
        yield Items(several[1:])
    yield Heading("What the sensors read", "readings")
    yield _drawing(answer)
    if answer.named:
        yield Heading("Why", "why")
        yield Items(reasons(answer))
    yield Heading("Sensors", "sensors")
    yield from map(Paragraph, filter(None, (evidence(answer), runner_up(answer))))
    header, *rows = table(answer, others=_OTHERS, width=_WIDEST)
    yield Grid(" ".join((*LEGEND, PLACES)), ["sensor", "state", *header[2:]], [_row(row) for row in rows])
    yield Heading("Drills on the history", "drills")
    yield Paragraph(answer.drill or "None: no fault was injected into this history so far.")
    yield Heading("About", "about")
    yield Items([*answer.about, *answer.notes, f"eccaht {__version__}"])


def _verdict(answer: Answer) -> tuple[str, str]:
    if answer.verdict == "undecided":
        return "undecided", "open"
    if answer.verdict == "nothing":
        return "nothing wrong", "yes" if answer.confident else "partly"
    return "sensors wrong", "no" if answer.confident else "partly"


def _drawing(answer: Answer) -> Drawing:
    wide, narrow = (
        embedded_svg(picture.draw(answer, width=width, title=False), name, _COLOURS)
        for name, width in (("wide", TEXT_WIDTH), ("narrow", picture.PHONE_WIDTH))
    )
    return Drawing(wide, narrow, headline(answer), _CAPTION)


def _row(row: Sequence[str]) -> list[Text]:
    """A row of the table with the name of its sensor first."""
    _, _, mark = row[0].partition(" ")
    return [row[1], Badge(mark, "no") if mark != "-" else "", *row[2:]]
