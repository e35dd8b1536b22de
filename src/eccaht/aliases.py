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
    "archive": "base.files",
    "arrays": "base.arrays",
    "covariance": "streams.covariance",
    "covariance.block_diagonal": "streams.covariance.kronecker",
    "covariance.circulant": "streams.covariance.ar1",
    "covariance.diagonal": "streams.covariance.dense",
    "covariance.ridge": "streams.covariance.base",
    "covariance.sparse_precision": "streams.covariance.low_rank",
    "covariance.spectrum": "streams.covariance.dense",
    "data": "plants.data",
    "data.chunk": "plants.data.source",
    "data.clock": "base.clock",
    "data.durations": "base.clock",
    "data.encoding": "plants.data.layout",
    "data.horizon": "plants.data.windower",
    "data.resolution": "plants.data.windows",
    "data.table": "plants.data.recorded",
    "data.tail": "plants.data.growing",
    "datasets": "research.datasets",
    "datasets.example": "plants.example",
    "datasets.testbeds": "research.datasets.labelled",
    "diagnose": "plants.diagnose",
    "diagnose.expectation": "plants.diagnose.report",
    "diagnose.pictures": "plants.diagnose.page",
    "diagnose.remedies": "plants.diagnose.checks",
    "diagnose.verdicts": "plants.diagnose.view",
    "experiments": "research.experiments",
    "experiments.charts": "research.experiments.rivals",
    "experiments.comparison_figure": "research.experiments.figures",
    "experiments.detection_alarms": "research.experiments.detection",
    "experiments.detection_cases": "research.experiments.detection",
    "experiments.detection_ours": "research.experiments.detection",
    "experiments.error_counts_figure": "research.experiments.figures",
    "experiments.incidents_figure": "research.experiments.figures",
    "experiments.incidents_methods": "research.experiments.incidents_cases",
    "experiments.incidents_trials": "research.experiments.incidents_summary",
    "experiments.localisation_figures": "research.experiments.figures",
    "experiments.nab": "research.experiments.detection_outcomes",
    "explain": "plants.incident.search",
    "explain.account": "plants.incident.search_words",
    "explain.arguments": "plants.incident.search",
    "explain.cautions": "plants.incident.search",
    "explain.document": "plants.incident.document",
    "explain.finding": "plants.incident.search",
    "explain.picture": "plants.incident.picture",
    "explain.signs": "plants.incident.search_cautions",
    "extras": "base.extras",
    "files": "base.files",
    "incident": "plants.incident",
    "incident.beside": "plants.incident.investigate",
    "incident.brief": "plants.incident.words",
    "incident.comparison": "plants.incident.investigate",
    "incident.dating": "plants.incident.naming",
    "incident.engine": "plants.incident.alarms",
    "incident.kinds": "plants.incident.describe",
    "incident.names": "plants.incident.words",
    "incident.phrases": "plants.incident.words",
    "incident.predictions": "plants.incident.describe",
    "incident.rankings": "plants.incident.answer",
    "incident.recording": "plants.incident.naming",
    "incident.why": "plants.incident.words",
    "labels": "base.labels",
    "limits": "streams.limits",
    "limits.action": "streams.limits.mixture",
    "limits.checks": "streams.limits.rates",
    "limits.entropy": "streams.limits.summary",
    "limits.swaps": "streams.limits.rates",
    "live": "service",
    "live.alerts.channel": "service.alerts.channels",
    "live.alerts.mail": "service.alerts.channels",
    "live.alerts.mqtt": "service.alerts.channels",
    "live.alerts.settings": "service.alerts.sender",
    "live.alerts.webhook": "service.alerts.channels",
    "live.api.ingest": "service.api.plants",
    "live.api.metrics": "service.api.health",
    "live.api.protocol": "service.api.serving",
    "live.api.stream": "service.api.plants",
    "live.buffer": "service.runtime.buffer",
    "live.courses": "service.runtime.past",
    "live.documents": "service.runtime.views",
    "live.engine": "service.runtime.engine",
    "live.feeds": "service.runtime.feeds",
    "live.hub": "service.runtime.views",
    "live.incidents": "service.runtime.past",
    "live.moved": "service.runtime.buffer",
    "live.operations.backup": "service.operations.copying",
    "live.plant": "service.runtime.plant",
    "live.runtime.jobs": "service.runtime.worker",
    "live.security.audit": "service.security.guard",
    "live.security.callers": "service.security.guard",
    "live.security.keys": "service.security.sessions",
    "live.security.proxy": "service.security.settings",
    "live.security.rates": "service.security.fence",
    "live.security.scopes": "service.security.guard",
    "live.security.secrets": "service.security.guard",
    "live.serving": "service.api.serving",
    "live.sources.file": "service.sources.library",
    "live.sources.gaps": "service.sources.health",
    "live.sources.json_text": "service.sources.parsing",
    "live.sources.make": "service.sources.feed",
    "live.sources.moments": "service.rows",
    "live.sources.quality": "service.rows",
    "live.sources.scrubbing": "service.sources.feed",
    "live.sources.showing": "service.sources.settings",
    "live.sources.tables": "service.sources.parsing",
    "live.sources.threads": "service.sources.feed",
    "live.sources.values": "service.rows",
    "live.store.migrations": "service.store.schema",
    "live.store.queries": "service.store.store",
    "live.texts": "service.parts",
    "live.tidying": "service.runtime.tidying",
    "live.worker": "service.runtime.worker",
    "measure": "streams.designs",
    "measure.available": "streams.designs.pair",
    "measure.conditional": "streams.designs.information",
    "measurements": "streams.measurements",
    "measurements.choices": "streams.measurements.rules",
    "measurements.entries": "streams.measurements.region",
    "measurements.exchange": "streams.measurements.selection",
    "measurements.pivoting": "streams.measurements.convex",
    "model": "plants.model",
    "model.columns": "plants.model.history",
    "model.constants": "plants.model.follow",
    "model.default_window": "plants.model.calibration",
    "model.detectors": "plants.model.residuals",
    "model.normal": "plants.model.residuals",
    "model.plausible": "plants.model.model_file",
    "model.prepare": "plants.model.follow",
    "model.rows": "plants.model.gaps",
    "model.shrinkage": "plants.model.local",
    "model.standstill": "plants.model.gaps",
    "model.tails": "plants.model.residuals",
    "naming": "base.presentation.text",
    "paper": "research.paper",
    "paper.side_by_side": "research.paper.fig1",
    "paper.spec": "research.paper.catalogue",
    "paper.theorems": "research.paper.results",
    "plants.explain": "plants.incident.search",
    "policies": "streams.policies",
    "policies.joint": "streams.policies.choosers",
    "policies.pending": "streams.policies.parts",
    "policies.stored_measurements": "streams.policies.storage",
    "posterior": "streams.posterior",
    "posterior.contaminated": "streams.posterior.likelihood",
    "posterior.empirical_means": "streams.posterior.pseudo_likelihood",
    "posterior.last_members": "streams.posterior.wide",
    "posterior.local_search": "streams.posterior.enumeration",
    "posterior.ranking": "streams.posterior.protocol",
    "posterior.shortlist": "streams.posterior.wide",
    "posterior.survey": "streams.posterior.population",
    "posterior.whole_vectors": "streams.posterior.shared_noise",
    "presentation": "base.presentation",
    "presentation.dates": "base.presentation.style",
    "presentation.labels": "base.presentation.style",
    "presentation.progress": "base.presentation.text",
    "problem": "streams.problem",
    "randomness": "base.randomness",
    "recalled": "base.recalled",
    "run": "streams.run",
    "run.replay": "plants.replay",
    "run.simulator": "streams.run.world",
    "run.workers": "streams.run.loop",
    "scales": "base.arrays",
    "sets": "streams.sets",
    "shifts": "streams.shifts",
    "statistics": "base.statistics",
    "stopping": "streams.stopping",
    "stored": "base.arrays",
    "watch": "plants.watch",
    "watch.fleet": "cli.watch_fleet",
    "watch.hearing": "plants.watch.events",
    "watch.operator": "plants.watch.session",
    "watch.plant_state": "plants.watch.state",
    "watch.rates": "plants.watch.session",
    "watch.recent": "plants.watch.plant",
    "watch.storage": "plants.watch.watch",
    "watch.watchers": "plants.watch.plant",
}

PUBLIC = ("covariance", "measurements")  # names that stay: `eccaht.covariance` is short for its place
PARTED: dict[str, dict[str, str]] = {  # packages whose names and modules have gone to several places
    "eccaht.run": {"Replay": "eccaht.plants.replay", "EndOfData": "eccaht.plants.replay"},
    "eccaht.explain": {},
    "eccaht.plants.explain": {},
}


def place_of(name: str) -> str | None:
    """The present place of a module of an earlier version, None if it has not moved.

    >>> place_of("eccaht.model.local"), place_of("eccaht.measure"), place_of("eccaht.cli")
    ('eccaht.plants.model.local', 'eccaht.streams.designs', None)
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
        old = spec.name.removeprefix("eccaht.")
        if old not in PUBLIC and (old in MOVED or old.split(".")[0] not in PUBLIC):
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
