"""The noise that a user names: a family with its shape, a matrix in a file, or a model."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from eccaht.base.files import regular_file
from eccaht.base.naming import unknown
from eccaht.plants.model.model import load_model
from eccaht.streams.covariance import Covariance, as_covariance, families
from eccaht.streams.problem import Problem

# family -> the options that shape it
FAMILIES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("toeplitz", "equicorrelation", "block", "circulant", "graph", "kronecker"), ("rho",)),
    **dict.fromkeys(("exponential", "rbf"), ("rho", "length_scale")),
    "spectral-mixture": ("alpha_mix",),
    "identity": (),
}
STREAMS = 128
_RHO, _KRONECKER = 0.8, 8


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
