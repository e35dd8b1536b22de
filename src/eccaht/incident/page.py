"""An answer as one self-contained HTML page, for light and dark screens, wide and narrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from eccaht.data.clock import PLAIN, Clock
from eccaht.incident import picture
from eccaht.incident.answer import Answer
from eccaht.incident.names import shown_briefly
from eccaht.incident.why import disagreements
from eccaht.incident.words import LEGEND, confidence, evidence, headline, reasons, runner_up, table
from eccaht.presentation.document import Badge, Block, Drawing, Grid, Heading, Items, Paragraph, Text, html
from eccaht.presentation.style import TEXT_WIDTH, embedded_svg
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
    "What the named sensors read, in their own units, before and after the onset (dotted line; hatched: where it may "
    "be, 95 %). The grey band holds 95 % of the readings that the other sensors predict; rings are readings outside "
    "it. Below them the strongest sensor that was not named, for comparison, and the evidence as it adds up."
)
_SHORT = {"z_local": "by z-score", "mahalanobis": "by Mahalanobis"}
_PLACES = 10  # of each ranking
_OTHERS = 10  # sensors in the table that are not named
_WIDEST = 10_000  # characters: names are not shortened


def write(
    answer: Answer,
    *,
    clock: Clock = PLAIN,
    about: Sequence[str] = (),
    drills: Sequence[Sequence[str]] = (),
) -> str:
    """The page as HTML.

    about: what was asked, a line each. drills: the table of drills on the history, its header first.
    """
    answer, cut = shown_briefly(answer)
    lines = [f"Names are shown without {cut}", *about] if cut else about
    return html(headline(answer, clock), _blocks(answer, clock, lines, drills), dark=True, contents=False)


def _blocks(answer: Answer, clock: Clock, about: Sequence[str], drills: Sequence[Sequence[str]]) -> Iterator[Block]:
    yield Paragraph([Badge(*_verdict(answer)), f" {confidence(answer)}"])
    for caution in answer.cautions:
        yield Paragraph([Badge("CAUTION", "partly"), f" {caution}"])
    yield Heading("What the sensors read", "readings")
    yield _drawing(answer, clock)
    if answer.named:
        yield Heading("Why", "why")
        yield Items(reasons(answer, clock))
    yield Heading("Sensors", "sensors")
    yield from map(Paragraph, filter(None, (evidence(answer, clock), runner_up(answer))))
    header, *rows = table(answer, others=_OTHERS, width=_WIDEST)
    yield Grid(" ".join(LEGEND), ["sensor", "named", *header[2:]], [_row(row) for row in rows])
    yield Heading("Beside plain rankings", "rankings")
    yield Items(disagreements(answer))
    yield _rankings(answer)
    yield Heading("Drills on the history", "drills")
    yield Paragraph(f"{answer.drill}." if answer.drill else "None: no fault was injected into this history so far.")
    if drills:
        yield Grid("Faults injected into the history, and what was found", drills[0], drills[1:])
    yield Heading("About", "about")
    yield Items([*about, *answer.notes, f"eccaht {__version__}"])


def _verdict(answer: Answer) -> tuple[str, str]:
    if not answer.sure:
        return "not sure", "open" if answer.confidence is None else "partly"
    return ("wrong", "no") if answer.named else ("nothing wrong", "yes")


def _drawing(answer: Answer, clock: Clock) -> Drawing:
    wide, narrow = (
        embedded_svg(picture.draw(answer, clock=clock, width=width, title=False), name, _COLOURS)
        for name, width in (("wide", TEXT_WIDTH), ("narrow", picture.PHONE_WIDTH))
    )
    return Drawing(wide, narrow, headline(answer, clock), _CAPTION)


def _row(row: Sequence[str]) -> list[Text]:
    """A row of the table with the name of its sensor first."""
    _, _, mark = row[0].partition(" ")
    return [row[1], Badge("named", "no") if mark == "named" else "", *row[2:]]


def _rankings(answer: Answer) -> Grid:
    """The first places of the answer and of the plain rankings beside each other; named sensors are marked."""
    named = set(answer.named)
    ours = [(suspect.sensor, suspect.belief) for suspect in answer.sensors]
    beside: Mapping[str, Sequence[tuple[str, float]]] = {"by belief": ours} | {
        title: answer.rankings[name] for name, title in _SHORT.items() if name in answer.rankings
    }

    def cell(ranking: Sequence[tuple[str, float]], place: int) -> Text:
        if place >= len(ranking):
            return ""
        sensor, score = ranking[place]
        return [Badge(sensor, "no") if sensor in named else sensor, f" {score:.3g}"]

    count = min(max(_PLACES, len(named)), len(ours))
    rows: list[list[Text]] = [[str(k + 1), *(cell(ranking, k) for ranking in beside.values())] for k in range(count)]
    return Grid(
        "Who comes first by belief, z-score against the hour before, Mahalanobis contribution; framed: the named",
        ["place", *beside],
        rows,
    )
