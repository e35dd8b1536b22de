"""What `eccaht wadi`, `eccaht water` and `eccaht smd` have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from eccaht.cli.output import Inputs, show_mean, writable_directory

if TYPE_CHECKING:
    from eccaht.statistics import Delay


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
    """The names that were given with commas between, or the default ones."""
    return tuple(default) if policies is None else tuple(name.strip() for name in policies.split(","))


def show_delay(value: Delay) -> str:
    """Mean, interval and how many were cut off; >= where the mean is a lower bound."""
    censored = f" {value.censored}/{len(value.times)} never" if value.censored else ""
    return f"{'>=' * bool(censored)}{show_mean(value)}{censored}"
