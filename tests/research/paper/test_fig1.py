"""The table of figure 1 is the search, and the figure is the table."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from numpy.typing import NDArray

from eccaht import Simulator, make_policy
from eccaht.research.experiments.tables import Table
from eccaht.research.paper import fig1, figures

SEED = 3


@pytest.fixture(scope="module")
def table() -> Table:
    return fig1.trace(SEED)


@pytest.fixture(scope="module")
def figure(table: Table) -> Figure:
    return figures.draw_search(table)


def by_step(table: Table, name: str) -> NDArray[np.float64]:
    return table[name].reshape(fig1.HORIZON + 1, fig1.STREAMS).astype(float)


def panels(figure: Figure) -> dict[str, Axes]:
    titled = [ax for ax in figure.axes if ax.get_title(loc="left").startswith("(")]
    return {ax.get_title(loc="left")[1]: ax for ax in titled}


def heights(container: object) -> list[float]:
    assert isinstance(container, BarContainer)
    return [bar.get_height() for bar in container.patches]


def test_the_entry_of_the_catalogue_drives_the_search() -> None:
    setting = replace(fig1.ENTRY.settings[0], arguments={"K": 9, "rho": 0.3}, n_anomalies=2)
    shorter = replace(fig1.ENTRY, settings=(setting,), horizon=7)
    other = fig1.trace(SEED, shorter)
    assert (other["step"].max(), other["stream"].max()) == (7, 8)
    assert (other["anomalous"].sum(), other["decided"].sum()) == (2 * 8, 2 * 8)
    assert panels(figures.draw_search(other))["d"].get_title(loc="left").startswith("(d) $t=7$")


def test_the_champion_is_added_and_the_challenger_subtracted(table: Table) -> None:
    measured = table["step"] > 0
    assert (table["weight"][measured & (table["stream"] == table["champion"])] > 0).all()
    assert (table["weight"][measured & (table["stream"] == table["challenger"])] < 0).all()


def test_the_correlation_is_the_champions_row_of_the_covariance(table: Table) -> None:
    measured = table["step"] > 0
    distance = np.abs(table["stream"] - table["champion"])[measured]
    np.testing.assert_allclose(table["correlation"][measured], fig1.RHO**distance)


def test_the_same_seed_gives_the_same_table_bit_for_bit(table: Table) -> None:
    again = fig1.trace(SEED)
    assert list(again) == list(table)
    assert all(again[name].tobytes() == table[name].tobytes() for name in table)


def test_telling_a_fresh_policy_the_tables_readings_gives_the_tables_beliefs(table: Table) -> None:
    policy = make_policy(fig1.POLICY, fig1.problem(), seed=SEED)
    weights, readings = by_step(table, "weight"), by_step(table, "reading")[:, 0]
    for step in range(fig1.HORIZON + 1):
        if step:
            policy.tell(weights[step], float(readings[step]))
        np.testing.assert_array_equal(policy.beliefs, by_step(table, "belief")[step])
        np.testing.assert_array_equal(policy.decision, np.flatnonzero(by_step(table, "decided")[step]))
        assert policy.lead == by_step(table, "lead")[step, 0]


@pytest.mark.parametrize("seed", [0, 3, 4])  # right, right at last, wrong
def test_the_outcome_agrees_with_the_library(seed: int) -> None:
    policy, world = make_policy(fig1.POLICY, fig1.problem(), seed=seed), Simulator(fig1.problem(), seed=seed)
    right = []
    for _ in range(fig1.HORIZON):
        c = policy.ask()
        policy.tell(c, world.measure(c))
        right.append(policy.decision.tolist() == world.anomalies.tolist())
    end = fig1.outcome(fig1.trace(seed))
    assert (end.decision, end.truth) == (policy.decision.tolist(), world.anomalies.tolist())
    assert end.right == right[-1]
    good_from = next((t for t in range(1, fig1.HORIZON + 1) if all(right[t - 1 :])), None)
    assert end.right_from == good_from


@pytest.mark.parametrize(("letter", "step"), list(zip("abcd", (0, 1, fig1.CLOSE_UP, fig1.HORIZON), strict=True)))
def test_bars_of_a_belief_panel_are_the_tables_beliefs(figure: Figure, table: Table, letter: str, step: int) -> None:
    (bars,) = panels(figure)[letter].containers
    assert heights(bars) == by_step(table, "belief")[step].tolist()


def test_the_heat_map_holds_the_weights_and_is_centred_at_zero(figure: Figure, table: Table) -> None:
    (mesh,) = (item for item in panels(figure)["e"].collections if isinstance(item, QuadMesh))
    np.testing.assert_array_equal(mesh.get_array(), by_step(table, "weight")[1:].T)
    low, high = mesh.get_clim()
    assert low is not None
    assert high == -low
