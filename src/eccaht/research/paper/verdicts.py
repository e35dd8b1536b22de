"""How a claim becomes a verdict: numbers with intervals from the runs, and rules that read them."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from eccaht.base.arrays import Array, Index
from eccaht.base.presentation.text import joined
from eccaht.base.statistics import clopper_pearson, estimate
from eccaht.research.paper.results import Results

Word = Literal["holds", "does not hold", "partly", "not decided", "not tested here", "not run"]
Answer = Literal["yes", "no", "open"]
EXTREME = 0.2  # share of the settings at either end of the ranks
FEWEST = 5  # runs: an interval from fewer says nothing
CLOSE = 0.1  # relative difference from a limit that counts as having reached it
OPPOSITE: dict[Answer, Answer] = {"yes": "no", "no": "yes", "open": "open"}
Given = Mapping[str, Results]


@dataclass(frozen=True)
class Measure:
    """One number with its 95 % interval, the values of the runs behind it, and its answer."""

    name: str  # what the number is, read after it
    value: float
    interval: tuple[float, float] | None
    sample: tuple[float, ...]  # one a run; the number is their mean, of factors the geometric one
    answer: Answer
    when: str = ""  # what this number stands for, read after "holds" or "not": "against round-robin"
    note: str = ""  # censored runs

    def __str__(self) -> str:
        ends = "" if self.interval is None else f" [{', '.join(map(short, self.interval))}]"
        return f"{short(self.value)}{ends} {self.name}" + (f" ({self.note})" if self.note else "")


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim. The condition says for what part it holds, or what is missing."""

    word: Word
    measures: tuple[Measure, ...] = ()
    condition: str = ""
    traced_to: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        return f"{self.word}: {self.condition}" if self.condition else self.word


@dataclass(frozen=True)
class Claim:
    """A claim of the paper in our words, and the rule by which it is judged."""

    id: str
    text: str
    where: str  # in the paper
    experiments: tuple[str, ...]
    criterion: str
    judge: Callable[..., Verdict]  # of the results of the experiments

    def verdict(self, results: Given, directory: str = "DIR") -> Verdict:
        missing = [id for id in self.experiments if id not in results]
        if missing:
            return Verdict("not run", condition=command(missing, directory))
        return self.judge(*(results[id] for id in self.experiments))


def command(experiments: Sequence[str], directory: str) -> str:
    """What makes the runs; the report alone where a verdict needs none."""
    runs = f"reproduce {' '.join(experiments)} --out" if experiments else "report"
    return f"eccaht {runs} {shlex.quote(directory)}"


def claimed(
    claims: list[Claim], id: str, where: str, *experiments: str
) -> Callable[[Callable[..., Verdict]], Callable[..., Verdict]]:
    """Add a rule to the claims; its docstring is the claim and, after an empty line, the criterion."""

    def add(judge: Callable[..., Verdict]) -> Callable[..., Verdict]:
        text, criterion = (" ".join(part.split()) for part in (judge.__doc__ or "").split("\n\n"))
        claims.append(Claim(id, text, where, experiments, criterion, judge))
        return judge

    return add


def lead(
    results: Results,
    rival: str,
    policy: str = "ecc-aht",
    *,
    setting: int = 0,
    at_least: float | None = None,
    for_good: bool = False,
    name: str = "",
) -> Measure:
    """How many measurements more the rival needs, run by run on the same set; how many times as many, if at_least."""
    (a, lost), (b, rivals_lost) = (results.times(each, setting, for_good=for_good) for each in (policy, rival))
    if not name:
        name = f"measurements saved against {rival}" if at_least is None else f"times as many measurements for {rival}"
    name += " until right for good" if for_good else ""
    note = lost_runs({policy: lost, rival: rivals_lost}, rival)
    if at_least is None:
        return judged(b - a, results, name, f"against {rival}", note=note)
    return judged(np.log(b / a), results, name, f"against {rival}", above=at_least, factor=True, note=note)


def judged(
    sample: ArrayLike,
    results: Results,
    name: str,
    when: str = "",
    *,
    above: float = 0.0,
    factor: bool = False,
    note: str = "",
) -> Measure:
    """Yes if the whole interval is above the level, no if below, else open; a factor is exp of a mean."""
    x = np.asarray(sample, dtype=float)
    mean, interval = estimate(x, rng=results.bootstrap())
    answer: Answer = "open"
    if interval is not None and len(x) >= FEWEST:
        level = np.log(above) if factor else above
        answer = "yes" if interval[0] > level else "no" if interval[1] < level else "open"
    if factor:
        x, mean = np.exp(x), float(np.exp(mean))
        interval = interval and (float(np.exp(interval[0])), float(np.exp(interval[1])))
    return Measure(name, mean, interval, tuple(x.tolist()), answer, when, note)


def exact(value: float, name: str, agrees: bool, when: str = "") -> Measure:
    return Measure(name, float(value), None, (float(value),), "yes" if agrees else "no", when)


def share(events: ArrayLike, at_most: float, name: str, when: str) -> Measure:
    """How often something happened, in %: yes if the whole Clopper-Pearson interval is within."""
    happened = np.asarray(events, dtype=float)
    low, high = clopper_pearson(int(happened.sum()), happened.size)
    answer: Answer = "no" if low > at_most else "yes" if high <= at_most else "open"
    ends = 100.0 * low, 100.0 * high
    sample = tuple((100.0 * happened).tolist())
    return Measure(f"% of {happened.size} {name}", 100.0 * float(happened.mean()), ends, sample, answer, when)


def at_the_limit(part: Measure) -> Answer:
    """Whether a factor is 1 but for a tenth, by its whole interval."""
    low, high = part.interval if part.interval and len(part.sample) >= FEWEST else (-np.inf, np.inf)
    if low > 1 - CLOSE and high < 1 + CLOSE:
        return "yes"
    return "no" if low > 1 + CLOSE or high < 1 - CLOSE else "open"


def lost_runs(cut_off: Mapping[str, ArrayLike], rival: str = "") -> str:
    """Say which policies have runs that were cut off, and which bound of a lead that makes."""
    lost = {name: int(np.sum(runs)) for name, runs in cut_off.items() if np.any(runs)}
    if not lost:
        return ""
    bound = "" if not rival or len(lost) > 1 else "a lower bound, " if rival in lost else "an upper bound, "
    (first, count), *others = lost.items()
    runs = [f"{count} run{'s' * (count > 1)} of {first}", *(f"{count} of {name}" for name, count in others)]
    return f"{bound}cut off at the horizon: {', '.join(runs)}"


def rank_correlation(x: Array, y: Array) -> float:
    """Spearman's coefficient; 0 where one of the two does not vary."""
    from scipy.stats import rankdata

    a, b = (rankdata(values) for values in (x, y))
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 0 else 0.0


class RankEnds(NamedTuple):
    """Of the settings of one kind of noise, by effective rank, the fifths at both ends."""

    kind: str
    low: Index
    high: Index
    where: str  # the ranks of the lowest fifth


def rank_ends(results: Results) -> Iterator[RankEnds]:
    """Each kind of noise of an experiment, by effective rank; mixtures as printed and of unit variance separately."""
    kinds: dict[str, list[int]] = {}
    settings = results.experiment.settings
    for k, setting in enumerate(settings):
        unit = " of unit variance" if setting.arguments.get("unit_variance") else ""
        kinds.setdefault(setting.family.replace("_", " ") + unit, []).append(k)
    for kind, members in kinds.items():
        with threadpool_limits(1):  # many small matrices: threads would only wait for each other
            ranks = np.array([settings[k].ranks().shannon for k in members])
        order, fifth = np.argsort(ranks), max(1, int(EXTREME * len(members)))
        ranks, places = ranks[order], np.array(members)[order]
        span = " to ".join(dict.fromkeys(short(float(ranks[k])) for k in (0, fifth - 1)))
        where = f"at effective ranks {span} of {kind}"
        yield RankEnds(kind, places[:fifth], places[-fifth:], where)


def final_f1(results: Results, settings: Index, policy: str) -> Array:
    ends: Array = np.mean([results.arrivals[int(k), policy].final for k in settings], axis=0)
    return ends


def conclude(measures: Iterable[Measure], *experiments: str, beside: Iterable[Measure] = ()) -> Verdict:
    """All say yes: holds. Some do: partly. None does: does not hold if one says no, not decided if none does.

    beside: numbers that are shown and do not enter.
    """
    parts = tuple(measures)
    traced = (*(f"{id}/summary.csv" for id in experiments), "claims/runs.csv")
    yes, no, open_ = ([part.when for part in parts if part.answer == answer] for answer in get_args(Answer))
    runs = max((len(part.sample) for part in parts), default=0)
    undecided = f"; not decided {in_words(open_)}" if open_ else ""
    word: Word = "holds"
    condition = ""
    if yes and (no or open_):
        against = f", not {in_words(no, 'or')}" if no else ""
        word, condition = "partly", f"holds {in_words(yes)}{against}{undecided}"
    elif no:
        word, condition = "does not hold", f"fails {in_words(no)}{undecided}" if open_ else ""
    elif open_:
        few = f"{runs} {'run is' if runs == 1 else 'runs are'} too few, at least {FEWEST} are needed"
        word, condition = "not decided", few if runs < FEWEST else f"with {runs} runs no interval decides it"
    return Verdict(word, (*parts, *(replace(part, answer="open") for part in beside)), condition, traced)


def in_words(phrases: Iterable[str], last: str = "and") -> str:
    """Phrases as in a sentence, the preposition that some begin with said once; last: "or" after a "not".

    >>> in_words(["against HDS", "against TTTS", "on rbf"])
    'against HDS and TTTS, and on rbf'
    """
    groups: dict[str, list[str]] = {}
    for phrase in dict.fromkeys(phrases):
        preposition, _, rest = phrase.partition(" ")
        groups.setdefault(preposition, []).append(rest)
    return f", {last} ".join(f"{preposition} {joined(rests, last)}" for preposition, rests in groups.items())


def short(value: float) -> str:
    """Three figures, as a person would write them; the tables keep all."""
    if np.isnan(value):
        return "no number"
    size = abs(value)
    if size >= 100 or value == int(value):
        return f"{value:.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}"
