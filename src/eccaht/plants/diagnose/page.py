"""The diagnosis as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eccaht.base.presentation.document import (
    Badge,
    Block,
    Code,
    Grid,
    Heading,
    Items,
    Paragraph,
    Picture,
    Piece,
    Text,
    html,
)
from eccaht.base.presentation.style import embedded_png
from eccaht.plants.diagnose import pictures
from eccaht.plants.diagnose.report import Diagnosis
from eccaht.plants.diagnose.verdicts import Verdict
from eccaht.version import __version__

_KINDS: dict[Verdict, str] = {"ok": "yes", "caution": "partly", "not fit": "no"}
_SAYS: dict[Verdict, str] = {
    "ok": "The model is fit for use.",
    "caution": "The model can be used with care: see what to do.",
    "not fit": "The model is not fit for use as it is: see what to do.",
}

_PICTURES = (
    (
        "Sensors that move together",
        pictures.draw_correlation,
        "Correlation matrix ordered by clustering",
        "Correlations that the model believes in, sensors ordered so that similar ones stand together. Blocks are "
        "groups with a common cause; noise that is common can be cancelled.",
    ),
    (
        "Spectrum",
        pictures.draw_spectrum,
        "Eigenvalues of the correlation matrix",
        "Eigenvalues of the correlations. Those above the band are common causes; those far below it are combinations "
        "of sensors that are nearly constant, which measurements rely on.",
    ),
    (
        "Independence of windows",
        pictures.draw_whiteness,
        "Autocorrelation between windows",
        "Autocorrelation of the windows. What leaves the grey band is memory: consecutive windows then say less than "
        "independent ones. What does not come back to it is drift.",
    ),
    (
        "Normality",
        pictures.draw_normality,
        "Quantile-quantile plots of the least normal sensors",
        "The least normal sensors: on the line is normal; steeper ends are heavy tails, a step is two levels.",
    ),
    (
        "Drift",
        pictures.draw_drift,
        "Means of consecutive stretches of the history",
        "The sensors that drift most: means of consecutive stretches of the history. The grey band holds 95 % of them "
        "if only the memory between windows moves them.",
    ),
)


def write(diagnosis: Diagnosis, title: str) -> str:
    return html(f"Diagnosis of {title}", _blocks(diagnosis))


def _blocks(diagnosis: Diagnosis) -> Iterator[Block]:
    yield Paragraph(f"{diagnosis.about}. eccaht {__version__}.")
    yield Heading("Verdict", "verdict")
    yield Paragraph([_badge(diagnosis.verdict), f" {_SAYS[diagnosis.verdict]}"])
    rows: list[list[Text]] = [
        [
            check.name.capitalize(),
            check.shown,
            _badge(check.verdict),
            check.meaning,
            _with_code(check.action or "Nothing."),
        ]
        for check in diagnosis.checks
    ]
    header = ("Check", "Number", "Verdict", "What it means", "What to do")
    yield Grid(
        "Every check with its number; the verdict on the whole is the worst of them", header, rows, kind="claims checks"
    )
    if concerned := [check for check in diagnosis.checks if check.sensors]:
        yield Heading("Sensors concerned", "sensors")
        yield Paragraph("All of them, worst first.")
        yield Items([f"{check.name.capitalize()}: {', '.join(check.sensors)}" for check in concerned])
    for heading, draw, alt, caption in _PICTURES:
        yield Heading(heading, draw.__name__.removeprefix("draw_"))
        yield Picture(embedded_png(draw(diagnosis.view)), alt, caption)
    yield Heading("Limits", "limits")
    yield Items([f"{check.name.capitalize()}: {check.limits}." for check in diagnosis.checks])


def _with_code(text: str) -> Sequence[Piece]:
    """Mark text between backticks as code."""
    return [Code(part) if place % 2 else part for place, part in enumerate(text.split("`"))]


def _badge(verdict: Verdict) -> Badge:
    return Badge(verdict, _KINDS[verdict])
