"""The posterior of very many streams: marginals while it is spread out, sets once it has narrowed.

No few dozen sets stand for a posterior over ten of a thousand streams: a measurement designed for them tells the
guesses apart, not the streams. While much is in doubt the measurement is therefore designed for the marginals and the
covariance of all streams (`Propagation`). These are approximate, and no search ends by them: once little is
left in doubt a population of sets takes over, and with it everything that is reported about confidence.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit

from eccaht.base.arrays import Array, Index
from eccaht.base.stored import whole_numbers
from eccaht.streams.posterior.gibbs import Neighbourhood, neighbourhood
from eccaht.streams.posterior.last_members import last_members
from eccaht.streams.posterior.likelihood import Likelihood
from eccaht.streams.posterior.local_search import climb
from eccaht.streams.posterior.population import Population
from eccaht.streams.posterior.propagation import Propagation
from eccaht.streams.posterior.protocol import Capabilities, Confidence, Posterior
from eccaht.streams.posterior.shortlist import Shortlist
from eccaht.streams.sets import Hypotheses, Moments, SetPrior

NARROW = 3.0  # nats of doubt below which sets are looked at
_DRAWN = 4  # sets drawn from the marginals that climb after each reading
_SPREAD, _BOTH, _SETS = range(3)  # marginals only; marginals and sets; sets only, after readings that are no sums


class Wide(Posterior):
    """Expectation propagation first, a population of sets later; of known shifts and a known number of anomalies."""

    can = Capabilities(whole_vectors=True, posterior=True, exact_lead=True)

    def __init__(self, likelihood: Likelihood, prior: SetPrior, rng: np.random.Generator) -> None:
        self._likelihood, self._prior, self._rng = likelihood, prior, rng
        self.marginal, self.population = Propagation(prior), Population(likelihood, prior, rng)
        self._best = prior.random_sets(rng, 1)
        self._stage = _SPREAD
        self._seed = int(rng.integers(2**32))  # of the shortlist, which is made anew after each whole vector
        self._near: Shortlist | None = None
        self._last: Moments | None = None  # those of the present readings, once asked for

    def update(self) -> None:
        """Take account of the newest reading."""
        evidence = self._likelihood.evidence
        newest = evidence.newest or []
        if self._stage != _SETS and (not newest or evidence.n_readings != len(self.marginal.rows) + len(newest)):
            self._stage, self.marginal = _SETS, Propagation(self._prior)
        if self._stage == _SETS:
            self._look_at_sets()
            return
        for h, r in newest:
            self.marginal.add(h[:-1], r)
        self._climb()
        if self._stage == _SPREAD and self._doubt() < NARROW:
            self._stage = _BOTH
            self.population.sets[:] = self._drawn(len(self.population.sets))
        if self._stage == _BOTH:
            self.population.update()

    def _look_at_sets(self) -> None:
        evidence = self._likelihood.evidence
        if evidence.has_matrix:
            self.population.update()
        else:
            rng = np.random.default_rng([self._seed, evidence.n_readings])
            self._near = Shortlist(self._likelihood, self._prior, self._best, rng)
            self._best = self._near.best[None]

    def moments(self) -> Moments | None:
        """Those of all streams, while much is in doubt."""
        if self._stage == _SETS or (self._stage == _BOTH and self._doubt() < NARROW):
            return None
        return self._moments()

    def _moments(self) -> Moments:
        """Those of the last one or two members where the others are certain, else those of the marginals."""
        if self._last is None:
            self._last = last_members(self._likelihood, self._around) or self.marginal.moments()
        return self._last

    def _doubt(self) -> float:
        """The entropy of all streams as if they were independent, in nats."""
        log_odds = self._moments().log_odds
        p, q = expit(log_odds), expit(-log_odds)
        return float(-(p * np.log(p) + q * np.log(q)).sum())

    @property
    def _around(self) -> Neighbourhood:
        return neighbourhood(self._likelihood, self._prior, self._best[0])

    def candidates(self) -> Index:
        """The best set found so far, that of the largest marginals, and the population once there is one."""
        if self._near is not None:
            return self._near.candidates()
        found = [] if self._stage == _SETS else [self._best, self._likeliest()]
        return np.vstack(found if self._stage == _SPREAD else [*found, self.population.candidates()])

    def marginals(self) -> Array | None:
        if self._near is not None:
            return self._near.marginals()
        return self.marginal.marginals if self._stage == _SPREAD else self.population.marginals()

    def in_doubt(self, around: Neighbourhood) -> Hypotheses:
        """The sets that the population leaves in doubt, or those around the MAP set."""
        if self._near is not None:
            return self._near.in_doubt(around)
        if self._stage == _SPREAD:
            return around.hypotheses(self._likelihood, self._rng)
        return self.population.in_doubt(around)

    def confidence(self, around: Neighbourhood, needed: float = 0.0) -> Confidence | None:
        """That of the population; before there is one, at most that of the least probable member."""
        if self._near is not None:
            return self._near.confidence(around, needed)
        if self._stage == _SPREAD:
            least = float(self.marginal.marginals[around.members].min())
            return Confidence(min(least, 1.0 / (1.0 + around.weight)), "unsettled")
        return self.population.confidence(around, needed)

    def advantage(self, around: Neighbourhood, needed: float = -math.inf) -> float:
        """That over all rivals that the population found."""
        if self._near is not None:
            return self._near.advantage(around)
        return -math.inf if self._stage == _SPREAD else self.population.advantage(around, needed)

    def _climb(self) -> None:
        """Improve the best set, that of the largest marginals and a few drawn ones, and keep the best of all."""
        sets = np.vstack([self._best, self._likeliest(), self._drawn(_DRAWN)])
        climb(self._likelihood, self._prior, sets)
        self._best, self._last = sets[[self._likelihood.log_likelihood(sets).argmax()]], None

    def _likeliest(self) -> Index:
        return np.argsort(-self.marginal.log_odds, kind="stable")[None, : self._prior.most]

    def _drawn(self, count: int) -> Index:
        """Sets in proportion to the odds of their streams: the largest of log-odds plus Gumbel noise."""
        noisy = self.marginal.log_odds + self._rng.gumbel(size=(count, self._prior.n_streams))
        return np.argpartition(-noisy, self._prior.most - 1, axis=1)[:, : self._prior.most]

    def state(self) -> dict[str, Array]:
        kept = {f"population.{name}": array for name, array in self.population.state().items()}
        kept |= {f"marginal.{name}": array for name, array in self.marginal.state().items()}
        return kept | {"best": self._best.astype(float), "stage": np.array([float(self._stage), float(self._seed)])}

    def restore(self, state: dict[str, Array]) -> None:
        evidence = self._likelihood.evidence
        parts = [
            {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}
            for prefix in ("population.", "marginal.")
        ]
        self.population.restore(parts[0])
        self._stage = int(whole_numbers(state["stage"][:1], "stages", most=_SETS)[0])
        self._seed = int(whole_numbers(state["stage"][1:], "seeds", most=2**32 - 1)[0])
        if len(state["best"]) != 1 or (self._stage == _SETS and len(parts[1]["rows"])):
            raise ValueError("its marginals are damaged")
        self._best, self._last = self._prior.checked(state["best"]), None
        if self._stage != _SETS:
            self.marginal.restore(parts[1], evidence.linear[:-1], evidence.half_diagonal[:-1])
        elif not evidence.has_matrix:
            self._look_at_sets()
