"""Policies that are no part of the package, as users write them."""

from pathlib import Path

# a composed policy and one with ask and tell, in a file of their own with a helper beside it
LAB = '''
import numpy as np

from eccaht import from_ask_tell, register_policy
from eccaht.streams.designs import PairDesign
from eccaht.streams.policies import Entry
from eccaht.streams.policies.choosers import Pair
from eccaht.streams.policies.parts import Parts
from eccaht.streams.posterior import PseudoLikelihood
from helper_of_lab import SHARE


def compose(problem, *, share: float = SHARE):
    def select(view):
        champion, challenger = view.ranking.champion, view.ranking.challenger
        if view.rng.random() < share:
            challenger = int(view.rng.choice(np.delete(np.arange(problem.size), view.ranking.members)))
        return champion, challenger

    return Parts(PseudoLikelihood(problem), Pair(select, PairDesign(problem)))


class Draws:
    """Reads streams drawn at random, one at a time."""

    def __init__(self, problem, seed):
        self.problem, self.rng, self.sums = problem, np.random.default_rng(seed), np.zeros(problem.size)

    def ask(self):
        return self.problem.budget * np.eye(self.problem.size)[self.rng.integers(self.problem.size)]

    def tell(self, c, y):
        self.sums += c * self.problem.shift * (y - c @ self.problem.mean) - 0.5 * (c * self.problem.shift) ** 2

    @property
    def scores(self):
        return self.sums


EXPLORING = Entry("ecc-aht with a random challenger now and then", "a file of mine", compose)
register_policy("exploring", EXPLORING)
register_policy("draws", from_ask_tell(Draws))
'''


def write_lab(folder: Path, name: str = "lab") -> Path:
    """A file that registers `exploring` and `draws`, and the helper that it imports."""
    (folder / "helper_of_lab.py").write_text("SHARE = 0.3\n")
    path = folder / f"{name}.py"
    path.write_text(LAB)
    return path
