"""The bench of real incidents: all methods on all cases of labelled collections, in one run.

Nothing is tuned to labels: every method has its default options, the same for all data.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

import eccaht
from eccaht.base.arrays import as_count
from eccaht.research.datasets.labelled import Entity, Testbed
from eccaht.research.experiments.detection import watch
from eccaht.research.experiments.detection_outcomes import Outcome
from eccaht.research.experiments.incidents_cases import (
    CHANGED_TIERS,
    METHODS,
    CaseWorld,
    LabelledCase,
    changed_cases,
    check_length,
    labelled_cases,
    learn,
    load,
    quiet_cases,
)
from eccaht.research.experiments.incidents_summary import ReplayTrial, trial_of
from eccaht.research.experiments.tables import restored, save_json
from eccaht.research.experiments.workers import local

Part = Literal["labelled", "last-third", "detection"]
Subjects = Sequence[Entity | CaseWorld | Testbed]


@dataclass(frozen=True)
class CollectionSettings:
    """What is common to all entities: draws of injected and of replayed incidents, seed, methods."""

    runs: int = 20
    seed: int = 0
    methods: tuple[str, ...] = METHODS

    def __post_init__(self) -> None:
        as_count(self.runs, "runs", least=1)
        as_count(self.seed, "seed", least=0)


class CollectionPiece(NamedTuple):
    """What is known of one part of an entity: records, and the segments that are left out with the reason.

    trials: of naming sensors. outcomes: of detection.
    """

    trials: list[ReplayTrial]
    left_out: list[str]
    outcomes: list[Outcome]


class CollectionJob(NamedTuple):
    """One part of an entity: each needs one model."""

    entity: Entity | CaseWorld | Testbed
    part: Part

    @property
    def name(self) -> str:
        return f"{self.entity.label} {self.part}"


def jobs_of(entities: Subjects) -> list[CollectionJob]:
    """Sensors are labelled in servers only, and of a simulated world there is nothing labelled at all."""
    jobs = []
    for entity in entities:
        if isinstance(entity, Entity) and entity.segments:
            jobs.append(CollectionJob(entity, "labelled"))
        if not isinstance(entity, Testbed):
            jobs.append(CollectionJob(entity, "last-third"))
        if not isinstance(entity, CaseWorld):
            jobs.append(CollectionJob(entity, "detection"))
    return jobs


def run(
    entities: Subjects,
    settings: CollectionSettings,
    *,
    jobs: int = 1,
    progress: Callable[[int], object] = lambda _: None,
    finished: Finished | None = None,
) -> CollectionPiece:
    """Run all methods on all cases; `progress(n)` is called with the number of jobs finished.

    No number depends on `jobs`, on the order of the entities or on which other methods run.
    """
    wanted = jobs_of(entities)
    done = {} if finished is None else {job.name: piece for job in wanted if (piece := finished.get(job))}
    progress(len(done))
    open_jobs = [job for job in wanted if job.name not in done]
    open_jobs.sort(key=_size, reverse=True)  # the longest first, so that the processes end together
    start = local(max(1, min(jobs, len(open_jobs))))
    with closing(start(_work, ((job, settings) for job in open_jobs))) as results:
        for job, piece in results:
            done[job.name] = piece
            if finished is not None:
                finished.put(job, piece)
            progress(1)
    pieces = [done[job.name] for job in wanted]
    return CollectionPiece(
        [trial for piece in pieces for trial in piece.trials],
        [line for piece in pieces for line in piece.left_out],
        [outcome for piece in pieces for outcome in piece.outcomes],
    )


def _size(job: CollectionJob) -> int:
    """About how long it takes; watching takes seconds, naming minutes."""
    if isinstance(job.entity, CaseWorld):
        return 1 << 30
    return 0 if job.part == "detection" else max(path.stat().st_size for path in job.entity.files)


def _work(job: CollectionJob, settings: CollectionSettings) -> tuple[CollectionJob, CollectionPiece]:
    try:
        return job, judge(job, settings)
    except (ValueError, ArithmeticError) as error:
        raise type(error)(f"{job.entity.label}: {error}") from None


def judge(job: CollectionJob, settings: CollectionSettings) -> CollectionPiece:
    """Let all methods judge a part of an entity: watch its recordings, or name the sensors of all its cases."""
    entity, label = job.entity, job.entity.label
    if job.part == "detection":
        assert not isinstance(entity, CaseWorld)
        return CollectionPiece([], [], watch(entity, settings.seed))
    assert not isinstance(entity, Testbed)
    subject = load(entity)
    check_length(subject)
    cases: Iterable[LabelledCase]
    if job.part == "labelled":
        history = subject.train
        cases, reasons = labelled_cases(subject)
    else:
        history, reasons = subject.train.first(subject.held), []
        changed = (changed_cases(subject, tier, settings.runs, settings.seed, label) for tier in CHANGED_TIERS)
        cases = chain(*changed, quiet_cases(subject))
    judges = learn(settings.methods, history, subject.known, settings.seed)
    trials = [
        trial_of(entity.collection, entity.name, case, name, method(case))
        for case in cases
        for name, method in judges.items()
    ]
    return CollectionPiece(trials, [f"{label}, {reason}" for reason in reasons], [])


# -- what an interrupted run leaves --------------------------------------------------------------------


class Finished:
    """Jobs that an interrupted run had finished, one file each, for the same program, settings and data only."""

    def __init__(self, directory: Path, settings: CollectionSettings) -> None:
        self._directory, self._made = directory, {"settings": asdict(settings), "program": program_digest()}

    def get(self, job: CollectionJob) -> CollectionPiece | None:
        """What the job has found, if it was run in just this way."""
        try:
            stored = json.loads(self._path(job).read_text(encoding="utf-8"))
            if stored["made"] != self._key(job):
                return None
            return CollectionPiece(
                trials=[restored(ReplayTrial, row) for row in stored["trials"]],
                left_out=list(stored["left_out"]),
                outcomes=[restored(Outcome, row) for row in stored["outcomes"]],
            )
        except (OSError, ValueError, KeyError, TypeError):  # none, or damaged
            return None

    def put(self, job: CollectionJob, piece: CollectionPiece) -> None:
        """Keep what a job has found, if there is room: a full disk must not end a run."""
        found = {
            "trials": [asdict(trial) for trial in piece.trials],
            "left_out": piece.left_out,
            "outcomes": [asdict(outcome) for outcome in piece.outcomes],
        }
        with suppress(OSError):
            self._directory.mkdir(exist_ok=True)
            save_json({"made": self._key(job), **found}, self._path(job))

    def clear(self) -> None:
        """Forget all: once a run is complete, the next one begins anew."""
        for path in self._directory.glob("*.json"):
            path.unlink(missing_ok=True)
        if self._directory.is_dir() and not any(self._directory.iterdir()):
            self._directory.rmdir()

    def _path(self, job: CollectionJob) -> Path:
        return self._directory / f"{hashlib.sha256(job.name.encode()).hexdigest()[:16]}.json"

    def _key(self, job: CollectionJob) -> dict[str, Any]:
        """As read back from JSON, so that the two compare."""
        return json.loads(json.dumps({**self._made, "job": job.name, "data": list(_data(job.entity))}))


def _data(entity: Entity | CaseWorld | Testbed) -> Iterator[Any]:
    if isinstance(entity, CaseWorld):
        yield asdict(entity)
        return
    for path in entity.files:
        found = path.stat()
        yield [str(path.resolve()), found.st_size, found.st_mtime_ns]


def program_digest() -> str:
    """A digest of the program's text: results of another one are not mixed with those of this one."""
    digest = hashlib.sha256()
    for path in sorted(Path(eccaht.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
