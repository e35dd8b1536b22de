"""What `eccaht wadi`, `eccaht water` and `eccaht incidents` have in common."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import typer

from eccaht.base.statistics import Delay
from eccaht.cli.output import Inputs, show_lines, show_mean, writable_directory
from eccaht.research.experiments.comparison import Records, summarise
from eccaht.research.experiments.localisation import check_known


@contextmanager
def output_directory(path: Path, files: Sequence[str], inputs: Inputs = MappingProxyType({})) -> Iterator[Path]:
    """Yield the directory, proved to take these files; if the work fails, directories made for it go if empty."""
    made = [place for place in (path, *path.parents) if not place.exists()]
    try:
        yield writable_directory(path, files=files, inputs=inputs)
    except BaseException:
        for place in made:
            try:
                place.rmdir()
            except OSError:  # never made, or not empty
                break
        raise


def chosen_policies(policies: str | None, default: Sequence[str]) -> tuple[str, ...]:
    """The names that were given with commas between, each a known one, or the default ones."""
    return check_known(default if policies is None else [name.strip() for name in policies.split(",")])


def show_delays(groups: Mapping[str, Records]) -> None:
    """The measurements of each policy until F1 >= 0.95, for the first time and for good, and F1 at the end."""
    lines = [["group", "policy", "first", "for good", "final F1"]]
    for label, records in groups.items():
        for row in summarise(records):
            lines.append([label, row.policy, _delay(row.first), _delay(row.for_good), show_mean(row.final_f1, 2)])
    show_lines(lines)
    typer.echo("never: not before the end of the attack, counted as its windows; >= is a lower bound")


def _delay(value: Delay) -> str:
    """Mean, interval and how many were cut off; >= where the mean is a lower bound."""
    censored = f" {value.censored}/{len(value.times)} never" if value.censored else ""
    return f"{'>=' * bool(censored)}{show_mean(value)}{censored}"
