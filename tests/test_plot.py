"""Pictures hold what they are about; what cannot be drawn is refused in one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from eccaht import Problem, Simulator, families, make_policy, pair_design, plot, search
from eccaht.research.experiments.comparison import compare
from eccaht.streams import Ledger, steps

NAMES = [f"pump {k}" for k in range(8)]
PROBLEM = Problem(families.toeplitz(8, 0.8), shift=3.0, n_anomalies=2, budget=4.0, names=NAMES)


def bars(figure: Figure) -> list[float]:
    """Heights of all bars, from left to right."""
    return [bar.get_height() for bar in sorted(figure.axes[0].patches, key=lambda bar: bar.get_x())]  # type: ignore


def test_a_design_shows_the_weights(tmp_path: Path) -> None:
    by_name = plot.design(PROBLEM, ("pump 1", "pump 5"), path=tmp_path / "design.png")
    assert np.allclose(bars(by_name), pair_design(PROBLEM, 1, 5).weights)
    assert (tmp_path / "design.png").stat().st_size > 1000
    assert [text.get_text() for text in by_name.axes[0].get_xticklabels()] == NAMES
    assert "'pump 1' and 'pump 5'" in by_name.axes[0].get_title(loc="left")
    assert bars(plot.design(PROBLEM, np.eye(8)[2])) == np.eye(8)[2].tolist()


def test_a_search_shows_every_score_and_the_lead() -> None:
    policy, world = make_policy("ecc-aht", PROBLEM, stopping=None), Simulator(PROBLEM, seed=1)
    ledger = Ledger(policy)
    assert len(list(steps(policy, world, 6, recorders=[ledger]))) == 6
    upper, lower = plot.search(ledger, anomalies=world.anomalies).axes
    ends = sorted(float(np.asarray(line.get_ydata())[-1]) for line in upper.lines)
    assert np.allclose(ends, np.sort(policy.scores))
    assert np.asarray(lower.lines[0].get_ydata()).tolist() == [entry.lead for entry in ledger.entries]
    assert {text.get_text() for text in upper.texts} >= set(policy.decision_names)
    assert np.allclose(bars(plot.search(policy)), policy.beliefs)


def test_a_comparison_is_that_of_its_records() -> None:
    records = compare(PROBLEM, ["ecc-aht", "round-robin"], runs=2, horizon=6)
    figure = plot.comparison(records)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert {label.partition(" ")[0] for label in labels} == {"ecc-aht", "round-robin"}
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def test_what_cannot_be_drawn_is_one_line() -> None:
    policy = make_policy("ecc-aht", PROBLEM)
    result = search(policy, Simulator(PROBLEM).measure, 2)
    with pytest.raises(ValueError, match=r"^Identification holds no search to draw: give the policy, or a L"):
        plot.search(result)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^the ledger is empty: "):
        plot.search(Ledger(make_policy("ecc-aht", PROBLEM)))
    with pytest.raises(ValueError, match=r"^anomalies must be streams from 0 to 7"):
        plot.search(policy, anomalies=[9])
    with pytest.raises(ValueError, match=r"^there is no stream 'pmup'"):
        plot.design(PROBLEM, ("pmup", "pump 1"))
    with pytest.raises(ValueError, match=r"^a comparison is drawn from the Records of compare"):
        plot.comparison({})  # type: ignore[arg-type]
