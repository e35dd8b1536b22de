"""Every algorithm by name; the table reads like that of SPEC section 2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from eccaht.beliefs import PseudoLikelihood
from eccaht.design import PairDesign
from eccaht.policies.choosers import Chooser, Pair, champion_challenger
from eccaht.policies.policy import Belief, Policy
from eccaht.problem import Problem
from eccaht.randomness import Seed, check_seed, rng_for
from eccaht.stopping import StoppingOption, check_alpha, stopping_rule


@dataclass(frozen=True)
class Entry:
    """One algorithm: where it comes from and what it is made of."""

    summary: str
    source: str
    belief: Callable[[Problem], Belief]
    chooser: Callable[[Problem], Chooser]


CATALOGUE: dict[str, Entry] = {
    "ecc-aht": Entry(
        "pseudo-likelihood, champion against challenger, optimal noise-cancelling pair design",
        "Yang & Xing, Algorithm 1",
        PseudoLikelihood,
        lambda problem: Pair(champion_challenger, PairDesign(problem)),
    ),
}


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


def make_policy(
    name: str,
    problem: Problem,
    *,
    seed: Seed = 0,
    stopping: StoppingOption = "gap",
    alpha: float = 0.05,
) -> Policy:
    """Build a policy by its name.

    seed: the policy's own generator is derived from it and the name.
    stopping: "gap", a number of measurements, or None (the caller decides).
    alpha: error level of the stopping rule.
    """
    if not isinstance(problem, Problem):
        raise ValueError(f"make_policy needs a Problem, not {type(problem).__name__}")
    entry = CATALOGUE.get(name) if isinstance(name, str) else None
    if entry is None:
        near = get_close_matches(str(name), CATALOGUE, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(CATALOGUE)}"
        raise ValueError(f"unknown policy {name!r}: {hint}")
    policy = Policy(
        problem,
        entry.belief(problem),
        entry.chooser(problem),
        stopping_rule(stopping, alpha, problem),
        rng_for(seed, "policy", name),
    )
    options = {"stopping": stopping, "alpha": check_alpha(alpha)}
    policy.recipe = Recipe(name, check_seed(seed), options)
    return policy
