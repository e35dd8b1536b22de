"""Policies of the user's own take part with the same numbers on any number of processes, wherever they are defined."""

import pickle
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from eccaht import Problem, Simulator, families, from_ask_tell, make_policy, register_policy
from eccaht.research.experiments import workers
from eccaht.research.experiments.comparison import compare
from eccaht.research.experiments.error_counts import count_errors
from eccaht.streams.policies import Entry
from eccaht.streams.policies.catalogue import own_entries
from eccaht.streams.policies.choosers import RoundRobin
from eccaht.streams.policies.parts import Parts
from eccaht.streams.posterior import PseudoLikelihood
from tests.checks.own import LAB, write_lab

pytestmark = pytest.mark.usefixtures("own_policies")

RUNS, HORIZON, SEED = 3, 20, 4


def problem() -> Problem:
    return Problem(families.toeplitz(16, 0.6), shift=3.0, n_anomalies=2, budget=3.0)


def in_turn(problem: Problem) -> Parts:
    return Parts(PseudoLikelihood(problem), RoundRobin(problem))


def test_no_number_depends_on_the_number_of_processes(tmp_path: Path) -> None:
    """A file outside the package, with ask and tell or composed, a function here, and a closure."""
    write_lab(tmp_path)
    sys.path.append(str(tmp_path))
    lab = import_module("lab")
    share = 0.9
    mine = Entry("more exploration", "this test", lambda problem: lab.compose(problem, share=share))
    register_policy("turn", Entry("", "", in_turn))
    register_policy("mine", mine)
    policies = ["ecc-aht", "exploring", "draws", "turn", "mine"]
    one, two = (compare(problem(), policies, runs=RUNS, horizon=HORIZON, seed=SEED, jobs=jobs) for jobs in (1, 2))
    assert list(one.hits) == policies
    for name, hits in one.hits.items():
        assert_array_equal(two.hits[name], hits)
    for run in range(RUNS):
        world = Simulator(problem(), seed=(SEED, run), names=["mine"])
        policy = make_policy("mine", problem(), seed=(SEED, run), stopping=None)
        for step in range(HORIZON):
            policy.tell(policy.ask(), world.measure(policy.ask()))
            assert len({*policy.decision} & {*world.anomalies}) == one.hits["mine"][run, step]
    # workers that have had policies get the present ones, also where a file has changed meanwhile
    register_policy("mine", Entry("another", "this test", in_turn), replace=True)
    counted = [count_errors(problem(), policy="mine", stopping="gap", runs=4, horizon=30, jobs=jobs) for jobs in (1, 2)]
    assert counted[0] == counted[1]


def test_problems_may_have_constraints_of_the_users_own(tmp_path: Path) -> None:
    code = """
import numpy as np
from eccaht.streams.measurements import Constraint, Design

class Short(Constraint):
    usual_norm = 1.0
    def allows(self, c):
        return bool(np.linalg.norm(c) <= 1.0 + 1e-9)
    def scaled(self, direction):
        return direction / np.linalg.norm(direction)
    def contrast(self, covariance, indices, values):
        return Design(covariance, indices, values, self.scaled(covariance.solve_sparse(indices, values)))
"""
    (tmp_path / "short_rules.py").write_text(code)
    sys.path.append(str(tmp_path))
    within = import_module("short_rules").Short()
    posed = Problem(families.toeplitz(8, 0.5), shift=3.0, n_anomalies=1, measurements=within)
    one, two = (compare(posed, ["ecc-aht"], runs=2, horizon=10, jobs=jobs) for jobs in (1, 2))
    assert_array_equal(one.hits["ecc-aht"], two.hits["ecc-aht"])


def test_a_worker_has_the_policies_of_the_process_that_sent_them() -> None:
    home, own = pickle.loads(workers.packed_policies())
    assert own == {}
    register_policy("mine", Entry("", "", in_turn))
    workers.learn.cache_clear()
    workers.learn(pickle.dumps((home, {})))  # a thread of the very process that packed them
    assert [*own_entries()] == ["mine"]
    workers.learn(pickle.dumps(("another", {})))
    assert [*own_entries()] == []


def test_a_policy_that_cannot_be_sent_or_loaded_is_refused() -> None:
    lock = threading.Lock()

    def compose(problem: Problem) -> Parts:
        with lock:
            return in_turn(problem)

    register_policy("locked", Entry("", "", compose))
    with pytest.raises(ValueError, match="use one job"):
        workers.packed_policies()
    with pytest.raises(ValueError, match="no_such_module"):
        workers.learn(b"cno_such_module\nf\n.")


def test_functions_of_files_are_sent_themselves_and_installed_ones_by_name(tmp_path: Path) -> None:
    write_lab(tmp_path)
    sys.path.append(str(tmp_path))
    lab = import_module("lab")
    assert workers._is_users("lab", lab)
    for installed in ("numpy", "json", "eccaht", "eccaht.streams", "pytest", "sys"):
        import_module(installed)
        assert not workers._is_users(installed, sys.modules[installed]), installed
    packed = workers.packed(own_entries()["exploring"])
    code = f"import pickle, sys; entry = pickle.loads({packed!r}); assert 'lab' not in sys.modules\n"
    code += "from eccaht import Problem, families\nproblem = Problem(families.identity(4), shift=1., n_anomalies=1, "
    code += "budget=1.)\nprint(type(entry.compose(problem).chooser).__name__)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert shown.stdout == "Pair\n"


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda *_: 3, r"int has no ask\(\)"),
        (lambda *_: vars(problem)["a"], "policy 'mine' cannot be built: KeyError: 'a'"),
        (lambda: 3, "policy 'mine' cannot be built: TypeError"),
    ],
)
def test_a_policy_that_cannot_be_built_is_refused_before_the_work(build: Any, words: str) -> None:
    register_policy("mine", from_ask_tell(build))
    with pytest.raises(ValueError, match=words):
        compare(problem(), ["mine"], runs=1, horizon=2)


def test_whatever_a_policy_raises_says_where_it_was() -> None:
    class Broken:
        scores = np.zeros(16)

        def __init__(self, *_: object) -> None:
            self.t = 0

        def ask(self) -> Any:
            return np.eye(16)[0]

        def tell(self, c: Any, y: float) -> None:  # noqa: ARG002
            self.t += 1
            if self.t > 2:
                raise KeyError("gone")

    register_policy("mine", from_ask_tell(Broken))
    with pytest.raises(ValueError, match=r"mine, run 0, .*KeyError"):
        compare(problem(), ["mine"], runs=1, horizon=5)


@pytest.mark.slow
def test_policies_of_a_script_take_part(tmp_path: Path) -> None:
    """Whose module is not to be imported, as that of a notebook."""
    code = LAB.replace("from helper_of_lab import SHARE", "SHARE = 0.3")
    code += """
if __name__ == "__main__":
    from eccaht import Problem, families
    from eccaht.research.experiments.comparison import compare

    problem = Problem(families.identity(8), shift=3.0, n_anomalies=1, budget=1.0)
    register_policy("local", from_ask_tell(lambda problem, seed: Draws(problem, seed + 1)))
    names = ["exploring", "draws", "local"]
    one, two = (compare(problem, names, runs=4, horizon=20, jobs=jobs) for jobs in (1, 2))
    print([(one.hits[name] == two.hits[name]).all().item() for name in one.hits])
"""
    (tmp_path / "script.py").write_text(code)
    for command in (["script.py"], ["-c", code]):
        done = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout == "[True, True, True]\n"
