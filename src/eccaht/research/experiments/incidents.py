"""The bench of real incidents: all methods on all cases of labelled collections, in one run.

Nothing is tuned to labels: every method has its default options, the same for all data.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import Literal, NamedTuple

from eccaht.base.arrays import as_count
from eccaht.research.datasets.labelled import Entity, read_entity
from eccaht.research.experiments.detection import Watched, watch
from eccaht.research.experiments.incidents_cases import (
    CHANGED_TIERS,
    METHODS,
    LabelledCase,
    Subject,
    changed_cases,
    check_length,
    labelled_cases,
    learn,
    quiet_cases,
)
from eccaht.research.experiments.incidents_summary import ReplayTrial, trial_of
from eccaht.research.experiments.workers import local

Part = Literal["labelled", "last-third", "detection"]


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

    trials: of naming sensors. watched: of detection.
    """

    trials: list[ReplayTrial]
    left_out: list[str]
    watched: list[Watched]


class CollectionJob(NamedTuple):
    """One part of an entity: each needs one model."""

    entity: Entity
    part: Part

    @property
    def name(self) -> str:
        return f"{self.entity.label} {self.part}"


def jobs_of(entities: Sequence[Entity]) -> list[CollectionJob]:
    """Sensors are labelled in servers only."""
    jobs = []
    for entity in entities:
        if entity.segments:
            jobs.append(CollectionJob(entity, "labelled"))
        if entity.kind == "servers":
            jobs.append(CollectionJob(entity, "last-third"))
        jobs.append(CollectionJob(entity, "detection"))
    return jobs


def run(
    entities: Sequence[Entity],
    settings: CollectionSettings,
    *,
    jobs: int = 1,
    progress: Callable[[int], object] = lambda _: None,
) -> CollectionPiece:
    """Run all methods on all cases; `progress(n)` is called with the number of jobs finished.

    No number depends on `jobs`, on the order of the entities or on which other methods run.
    """
    wanted, done = jobs_of(entities), {}
    longest_first = sorted(wanted, key=_size, reverse=True)  # so that the processes end together
    start = local(max(1, min(jobs, len(wanted))))
    with closing(start(_work, ((job, settings) for job in longest_first))) as results:
        for job, piece in results:
            done[job.name] = piece
            progress(1)
    pieces = [done[job.name] for job in wanted]
    return CollectionPiece(
        [trial for piece in pieces for trial in piece.trials],
        [line for piece in pieces for line in piece.left_out],
        [each for piece in pieces for each in piece.watched],
    )


def _size(job: CollectionJob) -> int:
    """About how long it takes; watching takes seconds, naming minutes."""
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
        return CollectionPiece([], [], watch(entity))
    subject = Subject(*read_entity(entity), entity.segments)
    check_length(subject)
    cases: Iterable[LabelledCase]
    if job.part == "labelled":
        history = subject.train
        cases, reasons = labelled_cases(subject)
    else:
        history, reasons = subject.train.first(subject.held), []
        changed = (changed_cases(subject, tier, settings.runs, settings.seed, label) for tier in CHANGED_TIERS)
        cases = chain(*changed, quiet_cases(subject))
    judges = learn(settings.methods, history, subject.known, settings.seed if job.part == "last-third" else None)
    trials = [
        trial_of(entity.collection, entity.name, case, name, method(case))
        for case in cases
        for name, method in judges.items()
    ]
    return CollectionPiece(trials, [f"{label}, {reason}" for reason in reasons], [])
