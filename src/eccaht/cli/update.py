"""`eccaht calibrate --update`: a model brought up to date, beside the one that it was made of."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer

from eccaht.cli.calibrate import document
from eccaht.cli.output import deliver, note, saved, shown_progress
from eccaht.plants import Notation, load_model
from eccaht.plants.retrain import Update, update_model


def update_calibration(
    model: Path | None,
    history: list[Path],
    data: list[Path],
    fixed: Mapping[str, object],
    *,
    learn: Sequence[str],
    notation: Notation,
    drills: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Bring a model up to date and print which of the two is better; fixed: options that the model has settled."""
    if model is None or not data:
        lacking = "--update MODEL, the model to bring up to date" if model is None else "--data FILE, the new rows"
        raise ValueError(f"give {lacking}")
    for name, value in fixed.items():
        if value:
            raise ValueError(f"{name} is settled by the model: leave it out, or calibrate anew")
    stretches = [_stretch(text) for text in learn]
    with shown_progress("reading", 1.0) as bar:
        update = update_model(
            load_model(model),
            data,
            history=history or None,
            learn=stretches,
            drills=drills,
            notation=notation,
            stage=lambda what, total: bar.total(total, what),
            progress=bar.advance,
        )
    for text in update.notes:
        note(text)
    deliver(
        [saved(out, update.model.save)],
        show=lambda: _print(update, out),
        document=lambda files: (
            document(update.model, str(out) if str(out) in files else None) | {"update": update.as_dict()}
        ),
        as_json=as_json,
    )


def _stretch(text: str) -> tuple[str, str]:
    """The start and the stop of a stretch to learn."""
    start, to, stop = text.partition(" to ")
    if not to:
        raise ValueError(f"--learn {text!r} is no stretch: write it as '2024-05-01 08:00 to 2024-05-01 12:00'")
    return start, stop


def _print(update: Update, out: Path | None) -> None:
    for sentence in update.sentences():
        indent = "  " if sentence.startswith(" ") else ""
        typer.echo(textwrap.fill(sentence.strip(), 100, initial_indent=indent, subsequent_indent=f"{indent}    "))
    if out is None:
        typer.echo("Nothing was written: --out MODEL writes the new model.")
