"""Every algorithm by name, with its source and its parts; docs/reference/policies.md is the table of them.

Users add their own by `register_policy` (docs/how-to/own-policy.md).
"""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from eccaht.base.arrays import as_number, check_alpha
from eccaht.base.presentation.text import did_you_mean
from eccaht.base.randomness import Seed, check_seed, rng_for
from eccaht.streams.covariance import Diagonal
from eccaht.streams.designs import Coordinates, Difference, PairDesign, PairToWeights, Tree
from eccaht.streams.measurements import Budget, Unlimited
from eccaht.streams.policies.bandits import compose_combgape, compose_t3c, compose_ttts, transportation_rule
from eccaht.streams.policies.choosers import (
    LeastMeasured,
    Pair,
    RandomSparse,
    RoundRobin,
    champion_challenger,
    compose_exact,
    compose_joint,
    compose_joint_pair,
    thompson_pair,
)
from eccaht.streams.policies.extrinsic import compose_extrinsic
from eccaht.streams.policies.games import compose_frank_wolfe, compose_lingame, compose_track_and_stop
from eccaht.streams.policies.hierarchical import TreeWalk, compose_hds
from eccaht.streams.policies.linear import compose_lingape, compose_od_linbai, compose_rage
from eccaht.streams.policies.parts import Parts, check_able
from eccaht.streams.policies.policy import Policy
from eccaht.streams.policies.revised import (
    TWO_STAGE,
    VERIFIED,
    compose_chernoff,
    compose_controlled,
    compose_oracle,
    compose_two_stage,
    compose_verified,
)
from eccaht.streams.policies.transductive import FREE_MEANS, KNOWN_MEANS
from eccaht.streams.posterior import (
    Capabilities,
    EmpiricalMeans,
    Enumeration,
    LocalSearch,
    Population,
    PseudoLikelihood,
)
from eccaht.streams.problem import Problem
from eccaht.streams.stopping import StoppingOption, stopping_rule

PAPER = "Yang & Xing"
REVISION = f"{PAPER}, revision of 2026"
DEFAULT_POLICY = "joint"  # for searches of data, if no other is named


@dataclass(frozen=True)
class Entry:
    """One algorithm: where it comes from and what it is made of.

    compose(problem, **options) puts the parts together; its keyword arguments are the policy's options, except
    `alpha` and `rng`, which every policy has. `can` is what its belief declares: known before anything is composed.
    """

    summary: str
    source: str
    compose: Callable[..., Parts]
    can: Capabilities = PseudoLikelihood.can
    regularize: float = 0.0  # default ridge
    constraints: bool = False  # honours any constraint on the weights, not only the L1 budget
    oracle: bool = False  # takes the true set by anomalies=: then a reference, no algorithm


def _ecc_aht_by(design: Callable[[Problem], PairToWeights]) -> Callable[[Problem], Parts]:
    """Algorithm 1 with champion and challenger measured by this design."""
    return lambda problem: Parts(PseudoLikelihood(problem), Pair(champion_challenger, design(problem)))


_ecc_aht = _ecc_aht_by(PairDesign)


def _mean_difference(problem: Problem, *, alpha: float) -> Parts:
    means = EmpiricalMeans(problem)
    chooser = Pair(champion_challenger, PairDesign(problem))
    return Parts(means, chooser, transportation_rule(problem, means, alpha))


CATALOGUE: dict[str, Entry] = {
    "ecc-aht": Entry(
        "pseudo-likelihood, champion against challenger, optimal noise-cancelling pair design",
        f"{PAPER}, Algorithm 1",
        _ecc_aht,
        constraints=True,
    ),
    "cost-free": Entry(
        "ecc-aht whose pair design has no L1 limit",
        f"{PAPER}, appendix ECC-AHT-CostFree",
        _ecc_aht_by(lambda problem: PairDesign(problem.replace(measurements=Unlimited(problem.budget)))),
    ),
    "simple-difference": Entry(
        "ecc-aht that measures the plain difference of the pair (No-QP)",
        f"{PAPER}, section 5.2",
        _ecc_aht_by(Difference),
    ),
    "mean-difference": Entry(
        "ecc-aht that ranks streams by marginal least-squares means",
        f"{PAPER}, appendix ECC-AHT-SimpleDiff",
        _mean_difference,
        EmpiricalMeans.can,
        constraints=True,
    ),
    "diagonal": Entry(
        "ecc-aht that takes the streams for independent (No-Correlation)",
        f"{PAPER}, appendix ECC-AHT-Diagonal",
        lambda p: _ecc_aht(p.replace(covariance=Diagonal(p.covariance.diagonal()))),
        constraints=True,
    ),
    "random-sparse": Entry(
        "ceil(B) random streams with Gaussian weights (RSP, No-Active)",
        f"{PAPER}, Algorithm RSP",
        lambda p: Parts(PseudoLikelihood(p), RandomSparse(p)),
    ),
    "round-robin": Entry(
        "one stream after the other (RR)",
        "Even-Dar, Mannor & Mansour 2006",
        lambda p: Parts(PseudoLikelihood(p), RoundRobin(p)),
    ),
    "restricted-tree": Entry(
        "ecc-aht restricted to the node sums of a binary tree",
        f"{PAPER}, section 5.4",
        _ecc_aht_by(Tree),
    ),
    "restricted-coordinates": Entry(
        "ecc-aht restricted to single streams",
        f"{PAPER}, appendix ECC-AHT-Restricted",
        _ecc_aht_by(Coordinates),
    ),
    "ttts-challenger": Entry(
        "ecc-aht whose pair is drawn from Beta posteriors",
        f"{PAPER}, Algorithm TTTS-Challenger",
        lambda p: Parts(PseudoLikelihood(p), Pair(thompson_pair, PairDesign(p))),
        constraints=True,
    ),
    "base-arm-combgape": Entry(
        "champion or challenger alone, whichever was measured less",
        f"{PAPER}, the authors' program (the printed BaseArm-CombGapE ranks by empirical means)",
        lambda p: Parts(PseudoLikelihood(p), LeastMeasured(p)),
    ),
    "combgape": Entry(
        "best set against the set of largest confidence bound, one stream at a time",
        "Nakamura & Sugiyama 2025, Algorithm 1",
        compose_combgape,
        EmpiricalMeans.can,
    ),
    "ttts": Entry(
        "top-two Thompson sampling over sets, one stream at a time",
        "Russo 2016, section 3",
        compose_ttts,
        EmpiricalMeans.can,
    ),
    "t3c": Entry(
        "top-two sampling over sets, challenger of smallest transportation cost",
        "Shang et al. 2020, section 2",
        compose_t3c,
        EmpiricalMeans.can,
    ),
    "hds": Entry(
        "hierarchical dynamic search on a binary tree, independent streams only",
        "Gafni et al. 2023, Algorithm 1",
        compose_hds,
        TreeWalk.can,
    ),
    "joint-pair": Entry(
        "exact likelihood of whole sets, best set by local search, its weakest swap, optimal pair design",
        "eccaht, docs/explanation/joint.md",
        compose_joint_pair,
        LocalSearch.can,
        constraints=True,
    ),
    "joint": Entry(
        "exact likelihood of whole sets, posterior by a tempered population, most informative measurement",
        "eccaht, docs/explanation/joint.md",
        compose_joint,
        Population.can,
        constraints=True,
    ),
    "exact": Entry(
        "joint with all sets enumerated (up to 200,000 of them)",
        "eccaht, docs/explanation/joint.md",
        compose_exact,
        Enumeration.can,
        constraints=True,
    ),
    "ecc-aht-verified": Entry(
        "ecc-aht that explores with probability 0.1, decides and stops by the exact likelihood of all sets",
        f"{REVISION}, Algorithm 1",
        compose_verified,
        VERIFIED,
    ),
    "two-stage": Entry(
        "a pilot of single streams, then the best mix of measurements for the set it found",
        f"{REVISION}, two-stage construction",
        compose_two_stage,
        TWO_STAGE,
    ),
    "oracle-design": Entry(
        "the best mix of measurements for the true set, given by anomalies=: a reference, no algorithm",
        f"{REVISION}, oracle design",
        compose_oracle,
        TWO_STAGE,
        oracle=True,
    ),
    "chernoff": Entry(
        "the best mix of measurements for the most likely set so far, drawn anew for each reading",
        "Chernoff 1959, procedure A",
        compose_chernoff,
        TWO_STAGE,
    ),
    "controlled-sensing": Entry(
        "chernoff with a random stream at readings 1, 2, 4, 8, ..., so that no set stays hidden",
        "Nitinawarat, Atia & Veeravalli 2013, modified Chernoff test",
        compose_controlled,
        TWO_STAGE,
    ),
    "extrinsic-jensen-shannon": Entry(
        "largest extrinsic Jensen-Shannon divergence; adapted: single streams and swaps of the most likely set",
        "Naghshvar & Javidi 2012, policy EJS",
        compose_extrinsic,
        TWO_STAGE,
    ),
    "track-and-stop": Entry(
        "tracks the best design against all rivals of the leading set, lazily; adapted: known means, free weights",
        "Jedra & Proutiere 2020, Algorithm 1",
        compose_track_and_stop,
        KNOWN_MEANS,
        constraints=True,
    ),
    "frank-wolfe": Entry(
        "one Frank-Wolfe step towards that design a reading; adapted: known means, continuous weights",
        "Wang, Tzeng & Proutiere 2021, Algorithm 1",
        compose_frank_wolfe,
        KNOWN_MEANS,
        constraints=True,
    ),
    "lingame": Entry(
        "a learner of designs against the nearest rival; adapted: known means, hedge over matrices, no optimism",
        "Degenne, Menard, Shang & Valko 2020, Algorithm 1 (LinGame)",
        compose_lingame,
        KNOWN_MEANS,
        constraints=True,
    ),
    "lingape": Entry(
        "pair in most doubt by least squares, any means; adapted: n best of K, greedy action in closed form",
        "Xu, Honda & Sugiyama 2018, Algorithm 1",
        compose_lingape,
        FREE_MEANS,
        constraints=True,
    ),
    "rage": Entry(
        "phases of a fixed design, each twice as exact, any means; adapted: drops streams, tracks instead of rounds",
        "Fiez, Jain, Jamieson & Ratliff 2019, Algorithm 1",
        compose_rage,
        FREE_MEANS,
        constraints=True,
    ),
    "od-linbai": Entry(
        "a fixed number of readings in phases that halve the streams, any means; adapted: n best of K, tracks designs",
        "Yang & Tan 2022, Algorithm 1",
        compose_od_linbai,
        FREE_MEANS,
        constraints=True,
    ),
    "robust": Entry(
        "ecc-aht that believes S + 0.01 I (regularize=0.01)",
        f"{PAPER}, appendix on regularization",
        _ecc_aht,
        regularize=0.01,
        constraints=True,
    ),
}
BUILT_IN = frozenset(CATALOGUE)  # others are of the user's own, see `register_policy`


@dataclass(frozen=True)
class Recipe:
    """The call of make_policy that builds a policy again."""

    name: str
    seed: tuple[int, ...]
    options: dict[str, Any]


def policy_names() -> tuple[str, ...]:
    """Return the names that `make_policy` knows.

    >>> "ecc-aht" in policy_names()
    True
    """
    return tuple(CATALOGUE)


def find_entry(name: str) -> Entry:
    if isinstance(name, str) and name in CATALOGUE:
        return CATALOGUE[name]
    raise unknown_policy(name)


def unknown_policy(name: object) -> ValueError:
    """The error for a name that no policy has."""
    hint = did_you_mean(name, policy_names(), otherwise=":")
    return ValueError(
        f"unknown policy {name!r}{hint} 'eccaht policies' lists them; import the module that registers your own"
    )


def make_policy(
    name: str,
    problem: Problem,
    *,
    seed: Seed = 0,
    stopping: StoppingOption = "default",
    alpha: float = 0.05,
    regularize: float | None = None,
    **options: Any,
) -> Policy:
    """Build a policy by its name.

    seed: the policy's own generator is derived from it and the name.
    stopping: "posterior", "glr" or "union" (policies that know the likelihood of sets), "gap", "own" (the rule of the
        algorithm's source), a number of measurements, or None (the caller decides); by default "own" where it has
        one, else "posterior" where it knows that of sets, "gap" where its scores are log-likelihood ratios, or None.
    alpha: error level of the stopping rule.
    regularize: the policy believes S + regularize I; the world keeps S.
    options: of the algorithm itself, e.g. `readings` of hds or `posterior` of joint.
    """
    if not isinstance(problem, Problem):
        raise ValueError(f"make_policy needs a Problem, not {type(problem).__name__}")
    entry, alpha = find_entry(name), check_alpha(alpha)
    check_able(entry.can, problem, f"policy {name!r}")
    _check_constraint(name, entry, problem)
    ridge = entry.regularize if regularize is None else _checked_ridge(name, entry.can, regularize)
    believed = problem.with_ridge(ridge) if ridge else problem
    rng = rng_for(seed, "policy", name)
    parts = entry.compose(believed, **_checked_options(name, entry, options, alpha=alpha, rng=rng))
    can = parts.belief.can
    known = "posterior" if can.posterior else "gap" if can.log_odds else None
    default = known if parts.own_stop is None else "own"
    chosen = default if stopping == "default" else stopping
    rule = stopping_rule(chosen, alpha, problem, own=parts.own_stop, can=can, belief=parts.belief)
    policy = Policy(problem, parts, rule, rng)
    policy._verify |= name not in BUILT_IN  # what is not ours may ask for more than the budget
    policy.recipe = Recipe(name, check_seed(seed), {"stopping": chosen, "alpha": alpha, "regularize": ridge, **options})
    return policy


def _check_constraint(name: str, entry: Entry, problem: Problem) -> None:
    """Refuse another constraint than the L1 budget where the algorithm spends it in its own way."""
    if type(problem.measurements) is not Budget and not entry.constraints:
        able = ", ".join(other for other, e in CATALOGUE.items() if e.constraints)
        raise ValueError(f"policy {name!r} needs an L1 budget, not {problem.measurements!r}: {able} do without")


def _checked_ridge(name: str, can: Capabilities, regularize: float) -> float:
    ridge = as_number(regularize, "regularize")
    if ridge < 0:
        raise ValueError(f"regularize must not be negative, not {regularize!r}")
    if ridge and not can.uses_covariance:
        raise ValueError(f"{name} knows no covariance: it cannot regularize one")
    return ridge


def _checked_options(name: str, entry: Entry, options: dict[str, Any], **given: Any) -> dict[str, Any]:
    """Options that the algorithm takes, with those that every policy has where it uses them."""
    taken = list(inspect.signature(entry.compose).parameters)[1:]
    known = [option for option in taken if option not in given]
    for option in options:
        if option not in known:
            has = f"its options are {', '.join(known)}" if known else "it has none of its own"
            raise ValueError(f"policy {name!r} has no option {option!r}: {has}")
    return options | {option: value for option, value in given.items() if option in taken}


# names are parts of file names and of lists with commas; "all" and NAME-diagonal mean something else there
_NAME = re.compile(r"(?!all$)(?!.+-diagonal$)[a-z0-9][a-z0-9._-]{0,63}")


def register_policy(name: str, entry: Entry, *, replace: bool = False) -> Entry:
    """Add a policy under a name of its own, for make_policy, compare and check_policy.

    replace: another policy that was registered under this name gives way, as when a cell of a notebook is run again.
    Returns the entry.

    >>> from eccaht.streams.policies.choosers import compose_joint
    >>> register_policy("joint", Entry("my own joint", "this example", compose_joint))
    Traceback (most recent call last):
    ValueError: policy 'joint' is built in: choose another name
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        rule = "up to 64 of a-z, 0-9, '-', '_' and '.', neither 'all' nor NAME-diagonal"
        raise ValueError(f"{name!r} cannot be the name of a policy: use {rule}")
    if not isinstance(entry, Entry):
        raise ValueError(f"policy {name!r} must be an Entry, not {type(entry).__name__}: from_ask_tell makes one")
    if name in BUILT_IN:
        raise ValueError(f"policy {name!r} is built in: choose another name")
    if not replace and CATALOGUE.get(name, entry) != entry:
        raise ValueError(f"policy {name!r} is registered already: choose another name, or add replace=True")
    CATALOGUE[name] = entry
    return entry


def own_entries() -> dict[str, Entry]:
    """The policies that were registered in this process, by name."""
    return {name: entry for name, entry in CATALOGUE.items() if name not in BUILT_IN}


def set_own_entries(entries: Mapping[str, Entry]) -> None:
    """Have these and no other policies of the user's own, as another process has them."""
    for name in own_entries():
        del CATALOGUE[name]
    CATALOGUE.update(entries)
