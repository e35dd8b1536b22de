"""Which of 36 samples are positive? Pools of up to six, eight wells a plate, and a power cut on the way."""

from pathlib import Path

import numpy as np

from eccaht import Problem, covariance, load_policy, make_policy
from eccaht.measurements import AtMost, Levels

FILE, WELLS = Path("plates.eccaht"), 8

# A sample is in a pool or not. A plate gets fresh aliquots, whose content varies by 0.1 a sample, and a background that
# varies by 0.1 for all of them; each well is read with noise of 0.1. A positive sample has 2 units instead of 1.
problem = Problem(
    covariance.LowRankPlusDiagonal(factors=np.full(36, 0.1), diagonal=np.full(36, 0.1**2)),
    mean=1.0,
    shift=1.0,
    n_anomalies=(0, 3),
    measurements=Levels([0, 1]) & AtMost(6),
    readout_noise=0.1,
)


class Laboratory:
    """Plates come back with a tenth of the wells unreadable; the second one is under way when the power fails."""

    def __init__(self):
        self.rng, self.plates, self.content = np.random.default_rng(8), 0, problem.mean.copy()
        self.content[[11, 30]] += 1.0

    def read(self, pools):
        """One plate: its wells share aliquots and background."""
        self.plates += 1
        if self.plates == 2:
            raise InterruptedError("power cut")
        aliquots = self.content + problem.covariance.sample(self.rng, 1)[0]
        readings = pools @ aliquots + 0.1 * self.rng.standard_normal(len(pools))
        readings[self.rng.random(len(pools)) < 0.1] = np.nan
        return readings


def search(laboratory):
    """Begin a search, or go on with the one in FILE."""
    policy = load_policy(FILE) if FILE.exists() else make_policy("joint", problem, seed=4, alpha=0.001)
    print(f"{'going on' if FILE.exists() else 'beginning'} with {len(policy.pending)} wells pending")
    while not policy.should_stop():
        if not len(policy.pending):
            policy.ask(batch=WELLS)
            policy.save(FILE)  # before anything is pipetted
        pools = policy.pending
        readings = laboratory.read(pools)
        came = np.isfinite(readings)
        if came.any():
            policy.tell_many(pools[came], readings[came])  # one plate is one moment
        for lost in pools[~came]:
            policy.forget(lost)
        policy.save(FILE)
    return policy


laboratory = Laboratory()
try:
    search(laboratory)
except InterruptedError as cut:
    print(cut)
policy = search(laboratory)
print("positive:", policy.decision)
