"""The live view fits a small terminal, shows the numbers it is given, and does not peek at the truth."""

from __future__ import annotations

import io
from itertools import pairwise

import numpy as np
import pytest
from rich.console import Console, RenderableType

from eccaht.cli import demo_view
from eccaht.cli.demo import summary
from eccaht.research.paper import fig1


@pytest.fixture(scope="module", params=[0, 4])
def moments(request: pytest.FixtureRequest) -> list[fig1.Moment]:
    return list(fig1.watch(request.param))


def lines(picture: RenderableType) -> list[str]:
    console = Console(file=io.StringIO(), width=demo_view.WIDTH, height=demo_view.HEIGHT)
    console.print(picture)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_every_frame_leaves_room_on_an_80_by_24_terminal(moments: list[fig1.Moment]) -> None:
    for before, now in pairwise(moments):
        for picture in (demo_view.frame(now, before), demo_view.frame(now, now, before)):
            shown = lines(picture)
            assert len(shown) < demo_view.HEIGHT
            assert max(map(len, shown)) <= demo_view.WIDTH
    # the line that names the files and the prompt follow
    end = fig1.outcome(fig1.tabulate(moments))
    assert len(lines(demo_view.verdict(moments[-1], summary(end)))) <= demo_view.HEIGHT - 2


def test_a_frame_is_blind_to_the_truth(moments: list[fig1.Moment]) -> None:
    lie = [moment._replace(anomalies=np.array([0, 1, 2])) for moment in moments]
    assert lines(demo_view.frame(moments[5], moments[5], moments[4])) == lines(demo_view.frame(lie[5], lie[5], lie[4]))


def test_a_frame_marks_the_pair_and_the_named_set(moments: list[fig1.Moment]) -> None:
    now, before = moments[7], moments[6]
    rows = lines(demo_view.frame(now, now, before))[2 : 2 + fig1.STREAMS]
    assert [k for k, row in enumerate(rows) if row.startswith("●")] == now.decision.tolist()
    assert [k for k, row in enumerate(rows) if row.endswith("champion")] == [now.champion]
    assert [k for k, row in enumerate(rows) if row.endswith("challenger")] == [now.challenger]
    for k, row in enumerate(rows):
        left, right = row.split("│")
        assert f"{now.beliefs[k]:.2f}" in left
        assert ("█" in left[-11:]) == (now.weights[k] < -0.3)
        assert ("█" in right) == (now.weights[k] > 0.3)


def test_the_verdict_counts_hits_misses_and_false_names(moments: list[fig1.Moment]) -> None:
    last = moments[-1]
    rows = lines(demo_view.verdict(last, []))[2 : 2 + fig1.STREAMS]
    named, true = set(last.decision.tolist()), set(last.anomalies.tolist())
    assert {k for k, row in enumerate(rows) if row.endswith("found")} == named & true
    assert {k for k, row in enumerate(rows) if row.endswith("missed")} == true - named
    assert {k for k, row in enumerate(rows) if row.endswith("wrongly")} == named - true


def test_the_words_name_every_stream_with_weight(moments: list[fig1.Moment]) -> None:
    for now in moments[1:]:
        words = demo_view.explain(now)
        assert f"stream {now.champion} against stream {now.challenger}" in words
        numbers = {int(word) for word in words.replace(",", " ").replace(".", " ").split() if word.isdigit()}
        carriers = set(np.flatnonzero(np.abs(now.weights) > 1e-9).tolist())
        assert numbers - {now.step} == carriers - {now.step}


def test_the_words_side_with_the_stream_that_gained(moments: list[fig1.Moment]) -> None:
    for before, now in pairwise(moments):
        lead = [m.scores[now.champion] - m.scores[now.challenger] for m in (before, now)]
        winner = now.champion if lead[1] >= lead[0] else now.challenger
        assert f"for stream {winner} over" in demo_view.conclude(now, before)


def test_playing_returns_every_moment(moments: list[fig1.Moment]) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=demo_view.WIDTH, height=demo_view.HEIGHT)
    assert demo_view.show(iter(moments), console, delay=0.0) == moments


@pytest.mark.parametrize(
    ("width", "height", "terminal", "fits"),
    [(80, 24, True, True), (200, 60, True, True), (79, 24, True, False), (80, 23, True, False), (80, 24, False, False)],
)
def test_the_view_needs_a_terminal_of_80_by_24(width: int, height: int, terminal: bool, fits: bool) -> None:
    file = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    environment = {"TERM": "xterm"}
    console = Console(file=file, force_terminal=terminal, width=width, height=height, _environ=environment)
    assert demo_view.fits(console) == fits
