"""The part as a whole: its jobs, the rules that end a search, and its tables."""

import numpy as np
import pytest
from benchmarks.identification import PROBLEMS, RIVALS, stops

from benchmarks import identification


def test_every_problem_and_rival_is_a_job_of_its_own() -> None:
    labels = [job.label for job in identification.jobs(False)]
    assert len(set(labels)) == len(labels) >= len(PROBLEMS) * len(RIVALS)
    assert len(PROBLEMS) == 10


@pytest.mark.parametrize("rival", [RIVALS[0], RIVALS[1], RIVALS[6]], ids=lambda rival: rival.label)
def test_both_rules_end_the_same_search(rival: identification.Rival) -> None:
    problem = PROBLEMS["revision: equicorrelation 0.9"]()
    posterior, glr = stops(rival, problem, 3)
    assert 1 <= posterior.readings <= glr.readings < identification.HORIZON
    assert glr.right
    assert stops(rival, problem, 3) == [posterior, glr]


def test_tables_of_a_small_run() -> None:
    wanted = (
        "joint, revision: toeplitz 0.9",
        "rage, revision: toeplitz 0.9",
        "own rule, combgame, revision: toeplitz 0.9",
    )
    refused = "combgame, paper: toeplitz 0.8, K = 128, n = 5, B = 5"
    rows = [row for job in identification.jobs(True) if job.label in (*wanted, refused) for row in job.run()]
    rows += [{"kind": "rate", "problem": "p", "rival": "combgame", "runs": 2, "theory": 4.5, "near": 1.1, "far": 1.0}]
    tables = {table.name: table for table in identification.tables(rows)}
    shared = tables["identification"].rows
    assert [row["rival"] for row in shared] == ["joint", "rage", "combgame"]
    assert shared[2]["refused"].endswith("up to 10,000, not 264,566,400")
    assert all(np.isfinite(row["glr"]) for row in shared[:2])
    assert tables["identification-own"].rows[0]["wrong"] <= 2
    assert "| 1.10 |" in tables["identification-rates"].markdown()
