"""Policies of the user's own have names like those that are built in, and never in place of them."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from eccaht import Problem, families, load_policy, make_policy, policy_names, register_policy
from eccaht.streams.policies import Entry, Policy
from eccaht.streams.policies.catalogue import own_entries, set_own_entries
from eccaht.streams.policies.choosers import RoundRobin
from eccaht.streams.policies.parts import Choice, Chooser, Parts, View
from eccaht.streams.posterior import PseudoLikelihood
from tests.checks.capabilities import check_fully
from tests.checks.own import write_lab

pytestmark = pytest.mark.usefixtures("own_policies")


def problem() -> Problem:
    return Problem(families.toeplitz(8, 0.5), shift=4.0, n_anomalies=2, budget=3.0)


def in_turn(problem: Problem) -> Parts:
    return Parts(PseudoLikelihood(problem), RoundRobin(problem))


ENTRY = Entry("one stream after the other", "this test", in_turn)


def test_a_registered_policy_is_like_those_that_are_built_in() -> None:
    assert register_policy("mine", ENTRY) is ENTRY
    assert policy_names()[-1] == "mine"
    assert own_entries() == {"mine": ENTRY}
    mine, theirs = make_policy("mine", problem(), seed=3), make_policy("round-robin", problem(), seed=3)
    assert isinstance(mine, Policy)
    assert np.array_equal(mine.ask(), theirs.ask())
    assert check_fully("mine") == {}


def test_a_name_that_exists_is_refused_unless_it_is_replaced() -> None:
    register_policy("mine", ENTRY)
    register_policy("mine", ENTRY)  # as a module that is imported in two ways
    other = Entry("another", "this test", in_turn)
    with pytest.raises(ValueError, match="registered already"):
        register_policy("mine", other)
    assert register_policy("mine", other, replace=True) is own_entries()["mine"]
    for name in ("joint", "ecc-aht"):
        with pytest.raises(ValueError, match="built in"):
            register_policy(name, other, replace=True)


@pytest.mark.parametrize("name", ["", "all", "joint-diagonal", "a,b", "a b", "../a", "A", "-a", "a" * 65, 3, None])
def test_names_are_those_that_files_and_lists_can_hold(name: str) -> None:
    with pytest.raises(ValueError, match="name of a policy"):
        register_policy(name, ENTRY)


def test_the_budget_holds_for_policies_of_the_users_own() -> None:
    class Loud(Chooser):
        def choose(self, view: View) -> Choice:
            return Choice(np.full(view.belief.problem.size, 1.0))

    register_policy("loud", Entry("", "", lambda problem: Parts(PseudoLikelihood(problem), Loud())))
    with pytest.raises(ValueError, match=r"\|c\|_1 = 8, beyond"):
        make_policy("loud", problem()).ask()


# -- files ---------------------------------------------------------------------------------------------


def test_a_saved_policy_goes_on_where_it_is_registered_and_says_what_to_import_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lab(tmp_path)
    sys.path.append(str(tmp_path))
    import_module("lab")
    policy = make_policy("exploring", problem(), seed=2)
    for y in (1.0, 2.5, -1.0):
        policy.tell(policy.ask(), y)
    policy.ask()
    policy.save(tmp_path / "exploring")
    again = load_policy(tmp_path / "exploring")
    assert np.array_equal(again.ask(), policy.ask())
    assert np.array_equal(again.scores, policy.scores)
    set_own_entries({})
    monkeypatch.delitem(sys.modules, "lab")
    with pytest.raises(ValueError, match="import the module that registers"):
        load_policy(tmp_path / "exploring")
    assert "lab" not in sys.modules
