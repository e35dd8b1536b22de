"""The noise that a user names: a family with its shape, a matrix in a file, or a model."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from eccaht.base.files import regular_file
from eccaht.base.presentation.text import unknown
from eccaht.cli.output import FAMILIES, STREAMS
from eccaht.plants import load_model
from eccaht.streams import CATALOGUE, Covariance, Problem, as_covariance, families

_RHO, _KRONECKER = 0.8, 8
DENSE = ("rbf", "graph")  # families whose operators hold matrices of all streams by all streams
# numbers of 8 bytes held at once, counted with peak resident sizes and rounded up
_DENSE_MATRICES, _JOINT_MATRICES, _VECTORS = 6, 3, 20
_RECORD = 16  # bytes: what is kept and computed of one measurement
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def given(**options: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def noise_problem(
    model: Path | None, family: str | None, streams: int | None, shape: dict[str, float], search: dict[str, Any]
) -> tuple[Problem, dict[str, Any]]:
    """The problem with the noise of a model or of a family, and how to call that noise."""
    if model is not None:
        if family is not None or streams is not None or shape:
            raise ValueError(
                "--model replaces --family, --streams and the options that shape them: drop one or the other"
            )
        return load_model(model).problem(**search), {"model": str(model)}
    S, called = family_noise(family, streams, shape)
    return Problem(S, **search), called


def family_noise(family: str | None, streams: int | None, shape: dict[str, float]) -> tuple[Covariance, dict[str, Any]]:
    """Return the covariance of a family, and its name with the option that shapes it; each has a default."""
    name, size = family or "toeplitz", streams or STREAMS
    if name not in FAMILIES:
        raise unknown(name, FAMILIES, "family", cutoff=0.0)
    takes = FAMILIES[name]
    for option in shape:
        if option not in takes:
            raise ValueError(f"{name} has no --{option.replace('_', '-')}: drop it")
    if len(shape) > 1:
        raise ValueError("--rho and --length-scale exclude each other: drop one")
    if takes and not shape:
        if "rho" not in takes:
            raise ValueError(f"{name} needs --{takes[0].replace('_', '-')}")
        shape = {"rho": _RHO}
    called = {"family": name, **shape}
    arguments = {option.removesuffix("_mix"): value for option, value in shape.items()}
    if name == "kronecker":
        if size % _KRONECKER:
            raise ValueError(f"kronecker needs a multiple of {_KRONECKER} streams, not {size}: change --streams")
        return families.kronecker(arguments["rho"], shape=(size // _KRONECKER, _KRONECKER)), called
    if name == "exponential" and "rho" in arguments:
        if not 0 < (rho := arguments.pop("rho")) < 1:
            raise ValueError(f"exponential needs 0 < rho < 1, not {rho!r}: change --rho or give --length-scale")
        arguments["length_scale"] = -1.0 / math.log(rho)
    return getattr(families, name.replace("-", "_"))(size, **arguments), called


def read_covariance(path: Path) -> Covariance:
    """Read a matrix from .npy or .csv; nothing in the file is ever executed."""
    try:
        if path.suffix == ".npy":
            with regular_file(path, "file") as file:
                return as_covariance(np.lib.format.read_array(file, allow_pickle=False))
        if path.suffix == ".csv":
            regular_file(path, "file").close()
            with warnings.catch_warnings(action="error", category=UserWarning):  # numpy only warns of an empty file
                return as_covariance(np.loadtxt(path, delimiter=",", ndmin=2))
        raise ValueError("its name must end in .npy or .csv")
    except OSError as error:
        raise ValueError(f"cannot read --covariance {path}: {error.strerror or error}") from None
    except (ValueError, EOFError, UserWarning) as error:
        raise ValueError(f"cannot use --covariance {path}: {error}") from None


def check_memory(family: str, streams: int, policies: Iterable[str], *, processes: int = 1, records: int = 0) -> None:
    """Refuse a simulation that needs more memory than there is, and say how much it would be."""
    have = free()
    joint = [name for name in policies if name in CATALOGUE and CATALOGUE[name].can.whole_vectors]
    if have is None:
        return
    need = needed(streams, dense=family in DENSE, joint=bool(joint), processes=processes)
    ways = ["fewer streams"]
    ways += ["a family other than " + " and ".join(DENSE)] if family in DENSE else []
    ways += [f"policies other than {', '.join(joint)}"] if joint else []
    ways += ["fewer jobs"] if need <= processes * have else []
    noise = f"{family} noise and {joint[0]}" if joint else f"{family} noise"
    for what, size, use in (
        (f"the records of {records:,} measurements", _RECORD * records, "fewer runs or a smaller horizon"),
        (f"{streams:,} streams with {noise}", need, ", or ".join(ways)),
    ):
        if size > have:
            raise ValueError(f"{what} need about {_show(size)}, this machine has {_show(have)}: use {use}")


def needed(streams: int, *, dense: bool, joint: bool, processes: int = 1) -> int:
    """Bytes for the covariance and a policy in each process.

    >>> needed(128, dense=False, joint=False)
    20480
    """
    matrices = _DENSE_MATRICES * dense + _JOINT_MATRICES * joint
    return 8 * processes * (matrices * streams**2 + _VECTORS * streams)


def free() -> int | None:
    """Bytes that can be taken, None where the system does not say."""
    found = []
    for count in (_available, _built_in, _allowed):
        with suppress(AttributeError, OSError, StopIteration, ValueError):
            found.append(count())
    return min(found, default=None)


def _available() -> int:
    """As Linux counts it, with what it would give back."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


def _built_in() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _allowed() -> int:
    return int(Path("/sys/fs/cgroup/memory.max").read_text())


def _show(size: float) -> str:
    for unit in _UNITS[:-1]:
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.0f} {_UNITS[-1]}"
