"""Which links of a network are slow? Probes take paths, four at a time, and some never arrive."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from eccaht import Problem, Simulator, UnknownShift, covariance, make_policy
from eccaht.measurements import OneOf

# 25 routers in a grid; the 16 at its edge can send probes to each other, which run along the row and then the column.
routers = list(itertools.product(range(5), repeat=2))
edge = [(row, column) for row, column in routers if {row, column} & {0, 4}]
links = [(a, b) for a, b in itertools.combinations(routers, 2) if abs(a[0] - b[0]) + abs(a[1] - b[1]) == 1]
number = {link: k for k, link in enumerate(links)}


def path(start, end):
    """The links between two routers as a row of zeros and ones."""
    step = 1 if end[1] > start[1] else -1
    stops = [(start[0], column) for column in range(start[1], end[1], step)]
    step = 1 if end[0] > start[0] else -1
    stops += [(row, end[1]) for row in range(start[0], end[0], step)] + [end]
    hops = [number[min(hop), max(hop)] for hop in itertools.pairwise(stops)]
    return np.isin(np.arange(len(links)), hops).astype(float)


paths = np.unique([path(*ends) for ends in itertools.permutations(edge, 2)], axis=0)
alike = len(links) - len(np.unique(paths.T, axis=0))  # links on the same paths: no probe can tell them apart
print(f"{len(paths)} paths, {len(links)} links, {alike} of them on the same paths as another")

# A link takes 2 ms, give or take 0.1 of its own; each router at its ends adds 0.2 that all its links share. A slow
# link takes 2 ms longer, more or less.
ends = np.array([[0.2 * (router in link) for router in routers] for link in links])
problem = Problem(
    covariance.LowRankPlusDiagonal(factors=ends, diagonal=np.full(len(links), 0.1**2)),
    mean=2.0,
    shift=UnknownShift(2.0, sign="positive"),
    n_anomalies=(0, 2),
    measurements=OneOf(paths),
    names=["{}{}-{}{}".format(*a, *b) for a, b in links],
)


class Network:
    """The simulated network; yours sends a packet and waits for its echo."""

    def __init__(self):
        self.world = Simulator(problem, anomalies=[9, 26], shifts=[1.5, 2.5], seed=2)
        self.lost, self.lock = np.random.default_rng(2), threading.Lock()

    def probe(self, c):
        """The delay along one path, in ms; None if the probe is lost, one of ten."""
        with self.lock:  # the simulator is not made for several threads
            return None if self.lost.random() < 0.1 else self.world.measure(c)


network = Network()
policy = make_policy("joint", problem, seed=1, alpha=1e-4)
with ThreadPoolExecutor(4) as pool:
    while not policy.should_stop():
        batch = policy.ask(batch=4)
        for c, delay in zip(batch, pool.map(network.probe, batch), strict=True):
            policy.forget(c) if delay is None else policy.tell(c, delay)
print("slow:", *policy.decision_names, "| as simulated:", *(problem.names[k] for k in network.world.anomalies))
