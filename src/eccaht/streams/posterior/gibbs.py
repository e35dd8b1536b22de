"""Moves of sets: one slot of many sets drawn, improved or looked at, given all other slots."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index
from eccaht.streams.posterior.compiled_moves import compiled_moves, hypotheses_of
from eccaht.streams.posterior.likelihood import Likelihood, without_slots
from eccaht.streams.sets import Hypotheses, SetPrior

_CHUNK = 1 << 18  # numbers worked on at once: what the processor's cache holds

Conditionals = NDArray[np.float32]


def finite_exp(log_odds: Array) -> Array:
    """Odds that can still be added up and squared."""
    return np.exp(np.minimum(log_odds, 300.0))


def log_posterior(likelihood: Likelihood, prior: SetPrior, sets: Index) -> Array:
    """Of every row, but for the constant that all share."""
    return likelihood.log_likelihood(sets) + prior.log_prior_of(sets)


def sweep(likelihood: Likelihood, prior: SetPrior, sets: Index, beta: Array, rng: np.random.Generator) -> None:
    """One Gibbs sweep: draw every slot of every set from its conditional of likelihood^beta times prior, in place."""
    length = max(1, _CHUNK // (prior.n_streams + 1))
    moves = compiled_moves(likelihood, prior)
    for start in range(0, len(sets), length):
        part = sets[start : start + length]
        if moves is not None:
            moves.sweep(part, beta[start : start + length], rng)
            continue
        walk = likelihood.walk(part)
        for slot in range(sets.shape[1]):
            slots = np.full(len(part), slot)
            walk.put(slot, _draw(_unscaled(walk.gains(slot), prior, part, slots, beta[start : start + length]), rng))


def conditionals(likelihood: Likelihood, prior: SetPrior, sets: Index, slots: Index, beta: Array) -> Conditionals:
    """The distribution of one slot of each set given the others, (N, K + 1)."""
    if (moves := compiled_moves(likelihood, prior)) is not None:
        chances = moves.unscaled(sets, slots, beta)
    else:
        chances = _unscaled(likelihood.gains(sets, slots), prior, sets, slots, beta)
    chances /= chances.sum(axis=1, keepdims=True)
    return chances


def conditional_hypotheses(
    likelihood: Likelihood, prior: SetPrior, sets: Index, slots: Index, beta: float, rng: np.random.Generator
) -> Hypotheses:
    """Each set with all streams that may fill one of its slots, weighted by their conditional distribution."""
    chances = conditionals(likelihood, prior, sets, slots, np.full(len(sets), beta))
    chances /= np.float32(len(sets))
    return hypotheses_of(without_slots(sets, slots), chances, *likelihood.draw_shifts(sets, slots, rng))


class Neighbourhood(NamedTuple):
    """A set, and what filling one of its slots otherwise does to its log-posterior.

    -inf where nothing would change or the change is impossible. Of several EMPTY slots, which are alike, one is kept.
    """

    members: Index
    slots: Index
    change: Array  # (slots, K + 1)

    @property
    def best(self) -> float:
        """Of all changes; at most 0 at a local optimum."""
        return float(self.change.max())

    @property
    def weight(self) -> float:
        """The probability of all sets one change away together, over that of this one; kept finite."""
        return float(finite_exp(self.change).sum())

    def hypotheses(self, likelihood: Likelihood, rng: np.random.Generator) -> Hypotheses:
        """The set and all sets one change away with their exact probabilities."""
        members, slots, change = self
        weights = np.exp(np.minimum(change, 80.0))  # nothing is far above the MAP set
        weights[0, members[slots[0]]] = 1.0  # the set itself, once
        weights /= weights.sum()
        copies = np.tile(members, (slots.size, 1))
        return hypotheses_of(without_slots(copies, slots), weights, *likelihood.draw_shifts(copies, slots, rng))


def neighbourhood(likelihood: Likelihood, prior: SetPrior, members: Index) -> Neighbourhood:
    """Look at all sets one change away."""
    empty = members == prior.n_streams
    slots = np.flatnonzero(~empty | (np.cumsum(empty) == 1))
    copies = np.tile(members, (slots.size, 1))
    change = changes(likelihood, prior, copies, slots)
    change[np.arange(slots.size), members[slots]] = -np.inf
    return Neighbourhood(members, slots, change)


def changes(likelihood: Likelihood, prior: SetPrior, sets: Index, slots: Index) -> Array:
    """What filling one slot of each set otherwise does to its log-posterior, (N, K + 1)."""
    if (moves := compiled_moves(likelihood, prior)) is not None:
        return moves.changes(sets, slots)
    each = np.arange(len(sets))
    gains = likelihood.gains(sets, slots)
    _weigh(gains, prior, sets, slots)
    gains -= gains[each, sets[each, slots]][:, None]
    return gains


def _weigh(gains: Array, prior: SetPrior, sets: Index, slots: Index) -> None:
    """Turn what each stream adds to the log-likelihood into what it adds to the log-posterior, in place."""
    prior.forbid(gains, sets, slots)
    prior.weigh_empty(gains, sets, slots, of_sets=True)


def climb_steepest(likelihood: Likelihood, prior: SetPrior, members: Index) -> Neighbourhood:
    """Make the best single change of one set until none helps; return what is around its end."""
    around = neighbourhood(likelihood, prior, members)
    while around.best > likelihood.tolerance:
        row, stream = np.unravel_index(around.change.argmax(), around.change.shape)
        members = around.members.copy()
        members[around.slots[row]] = stream
        around = neighbourhood(likelihood, prior, members)
    return around


def climb(likelihood: Likelihood, prior: SetPrior, sets: Index) -> None:
    """Fill slot after slot of every set in the best way, in place, until no single change helps.

    Many sets at once are faster this way, but one may end elsewhere than by its steepest climb.
    """
    tolerance = likelihood.tolerance
    if (moves := compiled_moves(likelihood, prior)) is not None:
        moves.climb(sets, tolerance)
        return
    active = np.arange(len(sets))
    while active.size:
        here, each = sets[active], np.arange(active.size)
        walk, moved = likelihood.walk(here), np.zeros(active.size, dtype=bool)
        for slot in range(sets.shape[1]):
            gains, old = walk.gains(slot), here[:, slot]
            _weigh(gains, prior, here, np.full(active.size, slot))
            best = gains.argmax(axis=1)
            better = gains[each, best] > gains[each, old] + tolerance
            walk.put(slot, np.where(better, best, old))
            moved |= better
        sets[active] = here
        active = active[moved]


def _draw(chances: Conditionals, rng: np.random.Generator) -> Index:
    """One place a row, in proportion; never one of probability 0."""
    line = chances.cumsum(axis=1)
    drawn = (np.float32(1.0) - rng.random((len(chances), 1), dtype=np.float32)) * line[:, -1:]  # in (0, end]
    return (line >= drawn).argmax(axis=1)


def _unscaled(gains: Array, prior: SetPrior, sets: Index, slots: Index, beta: Array) -> Conditionals:
    """Conditional probabilities of a slot, up to a factor a row, from the gains (which are overwritten)."""
    prior.forbid(gains, sets, slots)
    gains -= gains.max(axis=1, keepdims=True)
    chances = gains.astype(np.float32)
    chances *= beta.astype(np.float32)[:, None]
    prior.weigh_empty(chances, sets, slots)
    return np.exp(chances, out=chances)
