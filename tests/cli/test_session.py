"""A session answers line by line as the policy itself would, and goes on exactly after it was killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from eccaht import Problem, Simulator, families, load_policy, make_policy
from eccaht.base.files import exclusive
from eccaht.cli.main import run
from eccaht.cli.session import LineSession
from eccaht.streams import Policy

NAMES = ["inlet", "outlet", "tank", "pump", "valve", "drain"]
SAME = Problem(families.toeplitz(6, 0.8), shift=3.0, n_anomalies=2, budget=3.0, names=NAMES)


def saved(folder: Path, name: str = "search.eccaht", policy: str = "joint", **options: Any) -> Path:
    """A search that has just been set up, unless it is there already."""
    path = folder / name
    if not path.exists():
        make_policy(policy, SAME, seed=4, **options).save(path)
    return path


def made(folder: Path, name: str = "search.eccaht", **options: Any) -> LineSession:
    return LineSession(saved(folder, name, **options))


def say(session: LineSession, **request: Any) -> dict[str, Any]:
    answer = session.answer(json.dumps(request).encode())
    json.dumps(answer, allow_nan=False)
    return answer


class Client:
    """Another program, which talks to the command by lines."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def write(self, **request: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def __call__(self, **request: Any) -> Any:
        assert self.process.stdout is not None
        self.write(**request)
        return json.loads(self.process.stdout.readline())


@contextmanager
def started(folder: Path) -> Iterator[Client]:
    command = [sys.executable, "-m", "eccaht", "session", "search.eccaht"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, cwd=folder, **pipes) as process:  # type: ignore[call-overload]
        try:
            yield Client(process)
        finally:
            process.kill()


def test_a_policy_of_a_file_is_driven_killed_and_resumed(tmp_path: Path) -> None:
    """One's own, with nothing but ask and tell; what it prints does not mix with the answers."""
    (tmp_path / "mine.py").write_text(MINE)
    setup = "import mine; mine.eccaht.make_policy('in-turn', mine.PROBLEM, stopping=None).save('s.eccaht')"
    subprocess.run([sys.executable, "-c", setup], cwd=tmp_path, check=True, capture_output=True)
    command = [sys.executable, "-m", "eccaht", "session", "s.eccaht", "--import", "mine.py"]
    ask, tell = '{"do": "ask"}\n', '{"do": "tell", "reading": 1.5}\n'
    answers: list[Any] = []
    for sent in (ask + tell + ask, tell + ask):  # the end of the input comes between: whatever was asked for stands
        ended = subprocess.run(command, input=sent, capture_output=True, text=True, cwd=tmp_path, check=True)
        answers += map(json.loads, ended.stdout.splitlines())
        assert "hello" in ended.stderr
    asked = [answer["by_name"] for answer in answers if "by_name" in answer]
    assert asked == [{name: 3.0} for name in NAMES[:3]]
    assert [answer["n_readings"] for answer in answers] == [0, 1, 1, 2, 2]


MINE = """
import numpy as np
import eccaht

class InTurn:
    def __init__(self, problem, seed):
        self.sums, self.t = np.zeros(problem.size), 0
        print("hello")

    def ask(self):
        return 3.0 * np.eye(len(self.sums))[self.t % len(self.sums)]

    def tell(self, c, y):
        self.sums, self.t = self.sums + c * y, self.t + 1

    @property
    def scores(self):
        return self.sums

eccaht.register_policy("in-turn", eccaht.from_ask_tell(InTurn))
names = ["inlet", "outlet", "tank", "pump", "valve", "drain"]
PROBLEM = eccaht.Problem(np.eye(6), shift=3.0, n_anomalies=2, budget=3.0, names=names)
"""


def readings(policy: Policy, world: Simulator, count: int) -> list[tuple[list[float], float]]:
    """What an uninterrupted search asks for and reads."""
    pairs = []
    for _ in range(count):
        c = policy.ask()
        y = world.measure(c)
        policy.tell(c, y)
        pairs.append((c.tolist(), y))
    return pairs


def test_a_killed_process_goes_on_bit_for_bit(tmp_path: Path) -> None:
    """Killed between lines, and while a reading is on its way: no reading is lost and none counts twice."""
    saved(tmp_path)
    policy = make_policy("joint", SAME, seed=4)
    expected = readings(policy, Simulator(SAME, seed=1, anomalies=[1, 4]), 6)
    step = 0
    for killed_on_the_way in (False, True):
        with started(tmp_path) as client:
            if step:  # a program that does not know whether its last line was taken repeats it
                answer = client(do="tell", weights=expected[step - 1][0], reading=expected[step - 1][1], number=step)
                assert answer["n_readings"] == step
            for c, y in expected[step : step + 2]:
                step += 1
                assert client(do="ask")["weights"] == c
                if killed_on_the_way and step == 4:
                    client.write(do="tell", reading=y, number=step)
                    break
                assert client(do="tell", reading=y, number=step)["n_readings"] == step
            client.process.send_signal(signal.SIGKILL)
    with started(tmp_path) as client:
        for number, (c, y) in enumerate(expected[step - 1 :], step):
            if client(do="status")["n_readings"] < number:
                assert client(do="ask")["weights"] == c
            client(do="tell", weights=c, reading=y, number=number)
        end = client(do="decision")
        assert client.process.stdin is not None
        client.process.stdin.close()
        assert client.process.wait() == 0
    assert (end["n_readings"], end["beliefs"], end["lead"]) == (6, policy.beliefs.tolist(), policy.lead)
    assert (end["anomalies"], end["names"]) == (policy.decision.tolist(), list(policy.decision_names))
    assert load_policy(tmp_path / "search.eccaht").ask().tolist() == policy.ask().tolist()


@pytest.mark.parametrize("name", ["joint", "ttts-challenger"])
def test_every_request_survives_a_restart_before_and_after_it(tmp_path: Path, name: str) -> None:
    """Also batches, masks of streams, what is pending, forgotten or read late."""
    rng = np.random.default_rng(0)
    masks = [(rng.random(6) < 0.7).tolist() for _ in range(2)]
    masks[0][0] = masks[1][1] = True
    script: list[Any] = [
        lambda _: {"do": "ask"},
        lambda _: {"do": "ask", "available": masks[0]},
        lambda _: {"do": "ask", "available": masks[1]},
        lambda _: {"do": "tell", "reading": 1.0},
        lambda _: {"do": "ask", "batch": 3},
        lambda s: {"do": "tell", "reading": -1.0, "weights": s.policy.pending[1].tolist()},
        lambda s: {"do": "forget", "weights": s.policy.pending[0].tolist()},
        lambda _: {"do": "tell", "reading": 0.5},
        lambda _: {"do": "ask"},
    ]
    whole = made(tmp_path, policy=name)
    for request in script:
        expected = say(whole, **request(whole))
        parted = made(tmp_path, "part.eccaht", policy=name)  # killed after each answer
        assert say(parted, **request(parted)) == expected
    assert "error" not in expected
    assert made(tmp_path, "part.eccaht", policy=name).policy.scores.tolist() == whole.policy.scores.tolist()


def test_a_session_is_the_search_of_the_policy(tmp_path: Path) -> None:
    """Asked and told by lines it goes the same way; reading in between changes nothing."""
    policy, session = make_policy("joint", SAME, seed=4), made(tmp_path)
    for c, y in readings(policy, Simulator(SAME, seed=2), 6):
        for look in ("decision", "status"):
            say(session, do=look)
        asked = say(session, do="ask")
        assert asked["weights"] == c
        assert asked["by_name"] == {name: w for name, w in zip(NAMES, c, strict=True) if w}
        short = [float(f"{w:.12g}") for w in c]  # as programs print that keep fewer digits
        say(session, do="tell", reading=y, weights=short)
    assert say(session, do="decision")["beliefs"] == policy.beliefs.tolist()
    assert say(session, do="status")["should_stop"] == policy.should_stop()
    x = {name: float(k) for k, name in enumerate(NAMES[:5])}
    say(session, do="observe", values=[*x.values(), None])
    say(session, do="tell_many", weights=[{"inlet": 1.0}, {"tank": -1.0}], readings=[1.0, 2.0])
    policy.observe(x)
    policy.tell_many(np.array([np.eye(6)[0], -np.eye(6)[2]]), [1.0, 2.0])
    assert say(session, do="decision")["beliefs"] == policy.beliefs.tolist()
    assert say(session, do="status")["n_readings"] == 9


def test_a_bad_line_has_one_answer_and_changes_nothing(tmp_path: Path) -> None:
    session, quiet = made(tmp_path), made(tmp_path, "quiet.eccaht")
    asked = say(session, do="ask")
    for line in (
        b"",
        b"\xff\xfe\n",
        b"[1]\n",
        b'{"do": "ask"',
        b'{"do": "jump"}',
        b'{"do": "ask", "do": "tell"}',
        b'{"do": "ask", "bacth": 2}',
        b'{"do": "ask", "batch": 0}',
        b'{"do": "ask", "available": [true]}',
        b'{"do": "ask", "available": [false, false, false, false, false, false]}',
        b'{"do": "ask", "id": NaN}',
        b'{"do": "ask", "id": 1e999}',
        b'{"do": "tell"}',
        b'{"do": "tell", "reading": NaN}',
        b'{"do": "tell", "reading": "1"}',
        b'{"do": "tell", "reading": 1, "weights": [1, 2]}',
        b'{"do": "tell", "reading": 1, "weights": {"inlte": 1}}',
        b'{"do": "tell", "reading": 1, "number": 3}',
        b'{"do": "forget", "weights": [1, 0, 0, 0, 0, 0]}',
        b'{"do": "observe", "values": [null, null, null, null, null, null]}',
        b"[" * 100_000,
    ):
        answer = session.answer(line)
        assert list(answer) == ["error", "n_readings"], (line, answer)
        assert "\n" not in answer["error"]
        assert answer["n_readings"] == 0
    assert say(session, do="ask") == asked == say(quiet, do="ask")
    assert "inlet" in session.answer(b'{"do": "tell", "reading": 1, "weights": {"inlte": 1}}')["error"]
    assert session.answer(b'{"do": "nothing", "id": [1, "a"]}')["id"] == [1, "a"]


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**20) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*NAMES, "x"]), inner, max_size=3),
    max_leaves=8,
)
_KEYS = ("reading", "readings", "weights", "values", "number", "batch", "available", "id")


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["ask", "tell", "tell_many", "observe", "forget", "decision"]),
    st.dictionaries(st.sampled_from(_KEYS), _VALUES, max_size=3),
)
def test_no_line_ends_a_session(do: str, request: dict[str, Any]) -> None:
    session = FUZZED
    before = session.policy.n_readings
    answer = session.answer(json.dumps({"do": do, **request}).encode())
    json.dumps(answer, allow_nan=False)
    assert "error" not in answer or answer["n_readings"] == before == session.policy.n_readings


FUZZED = made(Path(mkdtemp()), policy="ecc-aht")


def test_a_reading_that_cannot_be_kept_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = made(tmp_path)
    asked = say(session, do="ask")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", full)
        answer = say(session, do="tell", reading=1.0)
    assert "No space left" in answer["error"]
    assert answer["n_readings"] == 0
    assert say(session, do="ask") == asked
    assert say(session, do="tell", reading=1.0)["n_readings"] == 1
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".part"] == []


def test_a_reading_is_never_taken_for_a_measurement_that_was_not_asked_for(tmp_path: Path) -> None:
    session = made(tmp_path)
    assert "ask first" in say(session, do="tell", reading=1.0)["error"]
    say(session, do="ask", batch=2)
    assert "2 measurements are pending" in say(session, do="tell", reading=1.0)["error"]
    assert "10 is next" not in say(session, do="tell", reading=1.0, number=9)["error"]
    beyond = say(session, do="tell", reading=1.0, weights=[9.0, 0, 0, 0, 0, 0], number=1)
    assert "they count" in beyond["warning"]
    assert say(session, do="tell", reading=5.0, number=1) == {"n_readings": 1, "should_stop": False, "repeated": True}


def test_one_session_at_a_time_has_a_search(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path)
    before = path.read_bytes()
    with exclusive(tmp_path / "search.eccaht.lock", "busy"):
        assert run(["session", str(path)]) == 2
    assert "another session uses" in capfd.readouterr().err
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [None, b"", b"{}", b"PK\x03\x04"])
def test_what_is_no_search_is_one_line(
    content: bytes | None, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "search.eccaht"
    if content is not None:
        path.write_bytes(content)
    assert run(["session", str(path)]) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "search.eccaht" in err
