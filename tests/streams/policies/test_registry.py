"""Policies of the user's own have names like those that are built in, and never in place of them."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import eccaht
from eccaht import Problem, families, load_policy, make_policy, policy_names, register_policy
from eccaht.checks import check_policy
from eccaht.streams.policies import Entry, Policy, plugins
from eccaht.streams.policies.catalogue import BUILT_IN
from eccaht.streams.policies.choosers import RoundRobin
from eccaht.streams.policies.parts import Choice, Chooser, Parts, View
from eccaht.streams.policies.registry import own_entries, registered, set_own_entries, unusable_policies
from eccaht.streams.posterior import PseudoLikelihood
from tests.checks.own import LAB, write_distribution, write_lab

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
    assert check_policy("mine") == {}


def test_a_name_that_exists_is_refused_unless_it_is_replaced() -> None:
    register_policy("mine", ENTRY)
    register_policy("mine", ENTRY)  # as a module that is imported in two ways
    other = Entry("another", "this test", in_turn)
    with pytest.raises(ValueError, match="policy 'mine' is registered already: choose another name, or add replace=T"):
        register_policy("mine", other)
    assert register_policy("mine", other, replace=True) is own_entries()["mine"]
    for name in ("joint", "ecc-aht"):
        with pytest.raises(ValueError, match=f"policy '{name}' is built in: choose another name"):
            register_policy(name, other, replace=True)
    with pytest.raises(ValueError, match="there is a policy 'mine' already"), registered({"mine": ENTRY}):
        pytest.fail("it is taken")
    with registered({"guest": ENTRY}):
        assert "guest" in policy_names()
    assert "guest" not in policy_names()


@pytest.mark.parametrize("name", ["", "all", "joint-diagonal", "a,b", "a b", "../a", "A", "-a", "a" * 65, 3, None])
def test_names_are_those_that_files_and_lists_can_hold(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name of a policy: use up to 64 of a-z"):
        register_policy(name, ENTRY)


def test_what_is_no_entry_is_refused() -> None:
    with pytest.raises(ValueError, match="policy 'mine' must be an Entry, not function: from_ask_tell makes one"):
        register_policy("mine", in_turn)  # type: ignore[arg-type]


def test_the_budget_holds_for_policies_of_the_users_own() -> None:
    class Loud(Chooser):
        def choose(self, view: View) -> Choice:
            return Choice(np.full(view.belief.problem.size, 1.0))

    register_policy("loud", Entry("", "", lambda problem: Parts(PseudoLikelihood(problem), Loud())))
    with pytest.raises(ValueError, match=r"its chooser gave weights of \|c\|_1 = 8, beyond Budget\(limit=3.0\)"):
        make_policy("loud", problem()).ask()


# -- files ---------------------------------------------------------------------------------------------


def test_a_saved_policy_goes_on_where_it_is_registered_and_says_what_to_import_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lab(tmp_path)
    sys.path.append(str(tmp_path))
    import_module("lab")
    for name in ("exploring", "draws"):
        policy = make_policy(name, problem(), seed=2)
        for y in (1.0, 2.5, -1.0):
            policy.tell(policy.ask(), y)
        policy.ask()
        policy.save(tmp_path / name)
        again = load_policy(tmp_path / name)
        assert np.array_equal(again.ask(), policy.ask())
        assert np.array_equal(again.scores, policy.scores)
    set_own_entries({})
    monkeypatch.delitem(sys.modules, "lab")
    words = "its policy 'exploring' is not registered here: import 'lab', if you trust it, and load the file again"
    with pytest.raises(ValueError, match=words):
        load_policy(tmp_path / "exploring")
    assert "lab" not in sys.modules


def test_a_file_of_a_policy_that_is_built_in_does_not_name_a_module(tmp_path: Path) -> None:
    make_policy("ecc-aht", problem()).save(tmp_path / "policy")
    assert b"module" not in (tmp_path / "policy").read_bytes()


# -- entry points --------------------------------------------------------------------------------------


def test_entry_points_are_found_when_they_are_needed(tmp_path: Path) -> None:
    write_lab(tmp_path, "lab_of_wheel")
    write_distribution(tmp_path, "lab-policies", "wheel-exploring = lab_of_wheel:EXPLORING")
    sys.path.append(str(tmp_path))
    assert policy_names()[-1] == "wheel-exploring"
    assert "lab_of_wheel" not in sys.modules
    make_policy("ecc-aht", problem())
    assert "lab_of_wheel" not in sys.modules
    assert make_policy("wheel-exploring", problem(), share=0.5).recipe is not None
    assert unusable_policies() == {}
    assert check_policy("wheel-exploring") == {}


def test_a_broken_entry_point_costs_nothing_but_itself(tmp_path: Path) -> None:
    (tmp_path / "lab_of_ruins.py").write_text("raise RuntimeError('no\\nway')\n")
    (tmp_path / "lab_of_strings.py").write_text("TEXT = 'text'\n")
    points = ["ruin = lab_of_ruins:X", "absent = no_such_module:X", "lacking = lab_of_strings:X"]
    points += ["text = lab_of_strings:TEXT", "twice = lab_of_strings:TEXT", "joint = lab_of_strings:TEXT"]
    write_distribution(tmp_path, "ruins", "\n".join(points))
    write_distribution(tmp_path, "others", "twice = lab_of_strings:TEXT")
    sys.path.append(str(tmp_path))
    reasons = unusable_policies()
    assert reasons["ruin"] == "policy 'ruin' of ruins cannot be loaded: RuntimeError: no way"
    assert reasons["absent"].endswith("cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'")
    assert "AttributeError" in reasons["lacking"]
    assert reasons["text"] == "policy 'text' of ruins must be an Entry, not str"
    assert reasons["twice"].startswith("policy 'twice' is declared by ")
    assert reasons["joint"] == "policy 'joint' of ruins is not used: a policy of this name is built in"
    assert {*reasons} == {"ruin", "absent", "lacking", "text", "twice", "joint"}
    with pytest.raises(ValueError, match="policy 'ruin' of ruins cannot be loaded"):
        make_policy("ruin", problem())
    assert make_policy("joint", problem()).recipe is not None
    assert own_entries() == {}


def test_policies_that_are_built_in_need_no_look_at_entry_points() -> None:
    plugins._declared.cache_clear()
    make_policy("ecc-aht", problem())
    assert plugins._declared.cache_info().misses == 0
    with pytest.raises(ValueError, match="unknown policy 'ecc-ath': did you mean 'ecc-aht'"):
        make_policy("ecc-ath", problem())
    assert plugins._declared.cache_info().misses == 1


@pytest.mark.slow
def test_a_policy_of_an_installed_wheel_is_compared_with_two_workers(tmp_path: Path) -> None:
    """Installed with pip into an environment of its own, which sees the packages of this one."""
    wheel = tmp_path / "lab_policies-1.0-py3-none-any.whl"
    info = "lab_policies-1.0.dist-info"
    code = LAB.replace("from helper_of_lab import SHARE", "SHARE = 0.3").partition('register_policy("')[0]
    files = {
        "lab_of_wheel.py": code,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: lab-policies\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[eccaht.policies]\nwheel-exploring = lab_of_wheel:EXPLORING\n",
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD")))
    home = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", str(home)], check=True)
    python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    places = "\n".join(path for path in sys.path if path.endswith("site-packages"))
    (folder,) = home.rglob("site-packages")
    (folder / "outer.pth").write_text(f"{places}\n{Path(eccaht.__file__).parents[1]}\n")
    install = [str(python), "-m", "pip", "install", "-q", "--no-index", "--no-deps", str(wheel)]
    subprocess.run(install, check=True)
    command = [str(python), "-m", "eccaht", "compare", "--policies", "ecc-aht,wheel-exploring", "--json"]
    command += ["--streams", "16", "--anomalies", "2", "--runs", "4", "--horizon", "20", "--jobs"]
    shown = [subprocess.run([*command, jobs], check=True, capture_output=True, text=True) for jobs in ("1", "2")]
    one, two = (json.loads(each.stdout)["policies"] for each in shown)
    assert [row["policy"] for row in one] == ["ecc-aht", "wheel-exploring"]
    assert [row["final_hits"] for row in one] == [row["final_hits"] for row in two]
    assert one[0]["final_hits"] != one[1]["final_hits"] or one[0]["first"] != one[1]["first"]


def test_what_is_built_in_is_known_by_name() -> None:
    assert {*policy_names()} == BUILT_IN
