"""Dotted names of earlier versions, until the next: `import eccaht.model` gives `eccaht.plants.model`, with a warning.

Modules were moved onto floors; code that imports them by their old places goes on for one version.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "archive": "base.archive",
    "arrays": "base.arrays",
    "covariance": "streams.covariance",
    "data": "plants.data",
    "data.clock": "base.clock",
    "data.durations": "base.durations",
    "datasets": "research.datasets",
    "datasets.example": "plants.example",
    "diagnose": "plants.diagnose",
    "experiments": "research.experiments",
    "explain": "plants.explain",
    "extras": "base.extras",
    "files": "base.files",
    "incident": "plants.incident",
    "labels": "base.labels",
    "limits": "streams.limits",
    "live": "service",
    "live.buffer": "service.runtime.buffer",
    "live.courses": "service.runtime.courses",
    "live.documents": "service.runtime.documents",
    "live.engine": "service.runtime.engine",
    "live.feeds": "service.runtime.feeds",
    "live.hub": "service.runtime.hub",
    "live.incidents": "service.runtime.incidents",
    "live.moved": "service.runtime.moved",
    "live.plant": "service.runtime.plant",
    "live.serving": "service.api.serving",
    "live.tidying": "service.runtime.tidying",
    "live.worker": "service.runtime.worker",
    "measure": "streams.designs",
    "measurements": "streams.measurements",
    "model": "plants.model",
    "naming": "base.naming",
    "paper": "research.paper",
    "policies": "streams.policies",
    "posterior": "streams.posterior",
    "presentation": "base.presentation",
    "problem": "streams.problem",
    "randomness": "base.randomness",
    "recalled": "base.recalled",
    "run": "streams.run",
    "run.replay": "plants.replay",
    "scales": "base.scales",
    "sets": "streams.sets",
    "shifts": "streams.shifts",
    "statistics": "base.statistics",
    "stopping": "streams.stopping",
    "stored": "base.stored",
    "watch": "plants.watch",
}

PUBLIC = ("covariance", "measurements")  # names that stay: `eccaht.covariance` is short for its place
PARTED = {"eccaht.run": {"Replay": "eccaht.plants.replay", "EndOfData": "eccaht.plants.replay"}}  # gone elsewhere


def place_of(name: str) -> str | None:
    """The present place of a module of an earlier version, None if it has not moved.

    >>> place_of("eccaht.model.normal"), place_of("eccaht.measure"), place_of("eccaht.cli")
    ('eccaht.plants.model.normal', 'eccaht.streams.designs', None)
    """
    parts = name.split(".")
    for n in range(len(parts), 1, -1):
        if (new := MOVED.get(".".join(parts[1:n]))) is not None:
            return ".".join(["eccaht", new, *parts[n:]])
    return None


class _Aliases(MetaPathFinder, Loader):
    """Gives the module itself, whichever name it is imported by."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if not fullname.startswith("eccaht.") or place_of(fullname) is None:
            return None
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        new = place_of(spec.name)
        assert new is not None
        module = import_module(new)
        if spec.name.split(".")[1] not in PUBLIC:
            warnings.warn(f"{spec.name} is now {new}", DeprecationWarning, stacklevel=2)
        if (parts := PARTED.get(spec.name)) is not None:
            whole = ModuleType(spec.name, module.__doc__)
            whole.__dict__.update({name: value for name, value in vars(module).items() if not name.startswith("__")})
            whole.__dict__.update({name: getattr(import_module(place), name) for name, place in parts.items()})
            whole.__path__ = []
            return whole
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None and module.__spec__.loader_state is not None:
            module.__spec__ = module.__spec__.loader_state  # the import has put the old name there


sys.meta_path.insert(0, _Aliases())  # before the usual ones, which would load the submodules of a moved package twice
