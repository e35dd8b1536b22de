"""`eccaht calibrate` says what became of each column; whatever is wrong is one line, code 2 and no file."""

import gzip
import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from eccaht.cli.main import run
from eccaht.plants.incident.counts import kept
from eccaht.plants.model.model import load_model
from tests.cli.commands import refused
from tests.plants.model.histories import clock, history, signals, write_csv


def test_a_table_of_decisions_and_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = 900
    columns = [clock(rows), *signals(rows, 2).T.tolist(), [int(k == 3) for k in range(rows)], [7] * rows]
    columns[1][5] = ""
    path = write_csv(tmp_path / "h.csv", ["time", "a", "b", "alarm", "same"], columns)
    assert run(["calibrate", str(path), "--out", str(tmp_path / "m.eccaht"), "--window", "1min"]) == 0
    said = capsys.readouterr()
    assert said.err.startswith("Note: not drilled: the history has 15 windows, and drills need 100; ")
    assert said.err.count("\n") == 1
    assert [line.split("  ")[0].strip() for line in said.out.splitlines()[:6]] == [
        "column",
        "time",
        "a",
        "b",
        "alarm",
        "same",
    ]
    table = {line.split()[0]: line.split()[1:] for line in said.out.splitlines()[1:6]}
    assert table["a"] == ["yes", "continuous", "0.11", "%", "IQR"]
    assert table["alarm"] == ["yes", "status", "0", "std", "(IQR", "is", "0)"]
    assert table["same"] == ["no", "status", "0", "constant"]
    assert "; 15 windows of 1min, from 2017-09-25 18:00" in said.out
    assert load_model(tmp_path / "m.eccaht").names == ("a", "b", "alarm")


def test_a_status_that_no_other_column_predicts_is_left_out_unless_it_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    by_hand = np.repeat(np.random.default_rng(0).integers(0, 2, 40), 10).tolist()
    path = write_csv(tmp_path / "h.csv", ["a", "b", "the mode of P-101"], [*signals(400, 2).T.tolist(), by_hand])
    command = ["calibrate", str(path), "--out", str(tmp_path / "m"), "--no-drill"]
    assert run(command) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 100
    assert "2 sensors kept, 1 column not" in said
    assert "no other column predicts this status: the mode of P-101;" in " ".join(said.split())
    assert run([*command, "--columns", "*,the mode of P-101"]) == 0
    assert "3 sensors kept, 0 columns not" in capsys.readouterr().out


def test_rows_without_times_are_counted_with_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_csv(tmp_path / "h.csv", ["a", "b"], signals(400, 2).T.tolist())
    command = ["calibrate", str(path), "--out", str(tmp_path / "m"), "--no-drill"]
    assert run(command) == 0
    said = capsys.readouterr().out
    assert "400 windows of 1 row, from row 1 to row 400" in said
    assert "--time-column" in said
    assert run([*command, "--window", "10s"]) == 2
    assert re.search("no time column found .*--row-interval .*--window 60rows", capsys.readouterr().err)


def test_json_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = history(tmp_path / "h.csv")
    out = tmp_path / "m.eccaht"
    options = ["--window", "30s", "--exclude", "s3", "--start", "2017-09-25T18:05"]
    assert run(["calibrate", str(path), "--out", str(out), *options, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert "choice" not in printed
    assert printed["drill"] is None
    assert printed["false_alarm_every"] is None  # 20 windows do not say what is normal
    assert printed["sensors"] == ["s0", "s1", "s2"]
    assert (printed["n_windows"], printed["window_seconds"], printed["ridge"]) == (20, 30.0, 0.0)
    assert printed["columns"][-1] == {
        "name": "s3",
        "kept": False,
        "reason": "excluded",
        "kind": "",
        "imputed": 0.0,
        "scaled_by": "",
    }


def test_drills_and_the_default_rate_are_in_the_last_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = history(tmp_path / "h.csv", rows=600, step=60), tmp_path / "m"
    assert run(["calibrate", str(path), "--out", str(out), "--drills", "70"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    *drills, rate, saved = said.out.splitlines()[-5:]
    assert re.match(r"On your own history: \d\d of \d\d injected faults were found, \d+ with exactly the", drills[0])
    assert re.match(r"Without a fault: \d+ false alarms? in 10 hours \(0.33 expected\)", drills[2])
    assert "one in 30 hours" in rate
    assert saved == f"Saved {out}"
    drilled = kept(load_model(out))
    assert drilled is not None
    assert 50 < drilled.counts.drills <= 70
    assert drilled.counts.line(60.0) == " ".join(drills)


LINES = "\n".join(
    [",".join(["timestamp", "a", "b"]), *(f"{t},{k % 7},{k * k % 11}.5" for k, t in enumerate(clock(900)))]
)


def text(change: Callable[[str], str]) -> Callable[[Path], object]:
    return lambda path: path.write_text(change(LINES))


def changed(line: int, cells: str) -> Callable[[Path], object]:
    """Replace what follows the time in one line."""

    def change(lines: str) -> str:
        rows = lines.split("\n")
        rows[line - 1] = rows[line - 1].split(",")[0] + cells
        return "\n".join(rows)

    return text(change)


def every(cells: str) -> Callable[[Path], object]:
    return text(
        lambda lines: "\n".join(["timestamp,a,b", *(row.split(",")[0] + cells for row in lines.split("\n")[1:])])
    )


MALFORMED: dict[str, tuple[Callable[[Path], object], str]] = {
    "truncated": (text(lambda lines: lines[:-8]), "line 901 .* has 1 value where the header has 3"),
    "wrong delimiter": (text(lambda lines: lines.replace(",", "~")), "only one column"),
    "delimiter changes": (
        text(lambda lines: lines.replace(",", ";").replace(";", ",", 2)),
        "no line with column names",
    ),
    "text in numbers": (changed(400, ",1,oops"), "line 400 .*'oops' in column 'b' is no number"),
    "all constant": (every(",1,2"), "at least 2 sensors, but none is left .*2 constant"),
    "two rows": (text(lambda lines: "\n".join(lines.split("\n")[:3])), "only 2 rows"),
    "one row": (text(lambda lines: "\n".join(lines.split("\n")[:2])), "a single moment"),
    "NaN only": (every(",NaN,NaN"), "none is left .*2 empty"),
    "one sensor": (every(",1,"), "at least 2 sensors"),
    "duplicate names": (text(lambda lines: lines.replace("a,b", "a,a", 1)), "two columns named 'a'"),
    "0 bytes": (lambda path: path.write_bytes(b""), "is empty"),
    "a directory": (lambda path: path.mkdir(), "is a directory"),
    "missing": (lambda _: None, "no file at"),
    "only a header": (text(lambda lines: lines.split("\n")[0]), "no rows"),
    "no header": (
        text(lambda lines: "\n".join(f"{k},{k % 3},{k % 5}" for k in range(lines.count("\n")))),
        "no line with column names.*--no-header",
    ),
    "a name too many": (
        text(lambda lines: lines.replace("a,b", "a,b,c", 1)),
        "line 1 .* has 4 column names, but most lines have 3 values",
    ),
    "blank": (text(lambda _: "\n\n\n"), "only one column"),
    "ragged, too long": (changed(500, ",1,2,3"), "line 500 .* has 4 values"),
    "ragged, too short": (changed(500, ",1"), "line 500 .* has 2 values"),
    "binary": (lambda path: path.write_bytes(np.random.default_rng(0).bytes(5000)), "no text"),
    "UTF-16 without its mark": (lambda path: path.write_bytes(LINES.encode("utf-16-le")), "UTF-16 text without"),
    "Latin-1 with control characters": (lambda path: path.write_bytes(b"\xff\x01" + LINES.encode()), "no text"),
    "a workbook": (lambda path: path.write_bytes(b"PK\x03\x04" + bytes(500)), "workbook"),
    "a pickle": (lambda path: path.write_bytes(pickle.dumps(list(range(100)))), "not UTF-8|no text"),
    "old line ends": (text(lambda lines: lines.replace("\n", "\r") + "\r"), "carriage returns|no text"),
    "a time that is none": (text(lambda lines: lines.replace(clock(900)[300], "yesterday")), "line 302 .*'yesterday'"),
    "a row without time": (text(lambda lines: lines.replace(clock(900)[300], "")), "line 302 .* no time"),
    "too large": (changed(500, ",1,1e308"), "too large to compute with"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_files(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make, words = MALFORMED[name]
    make(tmp_path / "h.csv")
    check_refused(tmp_path, "h.csv", words, capsys)


def check_refused(folder: Path, name: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(folder.iterdir())
    assert re.search(words, refused(["calibrate", str(folder / name), "--out", str(folder / "m.eccaht")], capsys))
    assert sorted(folder.iterdir()) == before


def test_malformed_packed_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv.gz").write_text(LINES)
    check_refused(tmp_path, "a.csv.gz", "named like a gzip file but is none", capsys)
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(LINES.encode())[:-500])
    check_refused(tmp_path, "b.csv.gz", "damaged or incomplete", capsys)
    (tmp_path / "a.parquet").write_text(LINES)
    check_refused(tmp_path, "a.parquet", "named like a Parquet file but is none", capsys)
    pl.DataFrame({"time": clock(900), "a": range(900)}).write_parquet(tmp_path / "b.parquet")
    (tmp_path / "b.parquet").write_bytes((tmp_path / "b.parquet").read_bytes()[:-300])
    check_refused(tmp_path, "b.parquet", "damaged or incomplete Parquet", capsys)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--out", "none/m"], "there is no directory"),
        (["--out", "."], "is a directory"),
        (["--columns", "s7"], "no column 's7'"),
        (["--exclude", "s*"], "no column .* is left"),
        (["--time-column", "when"], "no column 'when'"),
        (["--window", "10"], "not a length of time"),
        (["--window", "0.1s"], "shorter than the 1s between rows"),
        (["--window", "5min"], "at least 10 windows"),
        (["--start", "then"], "start 'then' is not a time"),
        (["--start", "5"], "start '5' is not a time"),
        (["--start", "2017-09-25T18:00+02:00"], "the times of the data have none: say which with --timezone"),
        (["--timezone", "Europe/Berln"], "unknown time zone 'Europe/Berln': did you mean 'Europe/Berlin'"),
        (["--timezone", "+25:00"], "unknown time zone"),
        (["--window", "10rows"], "has times in 'timestamp'"),
        (["--start", "2030-01-01"], "no row from 2030-01-01"),
        (["--row-interval", "1s", "--time-column", "timestamp"], "not both"),
    ],
)
def test_bad_options(
    options: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    history(tmp_path / "h.csv")
    out = [] if "--out" in options else ["--out", "m"]
    assert re.search(words, refused(["calibrate", "h.csv", *out, *options], capsys))
    assert [path.name for path in tmp_path.iterdir()] == ["h.csv"]


def test_an_old_model_stays_if_the_new_one_fails(tmp_path: Path) -> None:
    history(tmp_path / "h.csv")
    assert run(["calibrate", str(tmp_path / "h.csv"), "--out", str(tmp_path / "m"), "--no-drill"]) == 0
    before = (tmp_path / "m").read_bytes()
    (tmp_path / "h.csv").write_bytes(b"")
    assert run(["calibrate", str(tmp_path / "h.csv"), "--out", str(tmp_path / "m")]) == 2
    assert (tmp_path / "m").read_bytes() == before


def test_a_model_is_brought_up_to_date_and_written_only_if_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new, model = history(tmp_path / "h.csv", rows=600, step=60), tmp_path / "n.csv", tmp_path / "m"
    header, *rows = old.read_text().splitlines(keepends=True)
    old.write_text("".join([header, *rows[:450]]))
    new.write_text("".join([header, *rows[450:]]))
    assert run(["calibrate", str(old), "--out", str(model), "--no-drill"]) == 0
    capsys.readouterr()
    update = ["calibrate", "--update", str(model), str(old), "--data", str(new), "--drills", "20"]
    assert run(update) == 0
    out = capsys.readouterr().out
    assert "150 windows of the new data; 300 of" in out
    assert "\n  old: " in out
    assert "--out MODEL" in out.splitlines()[-1]
    assert max(map(len, out.splitlines())) <= 100
    later = tmp_path / "later"
    assert run([*update[:-2], "--no-drill", "--out", str(later), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["model"], document["n_windows"]) == (str(later), 450)
    assert document["update"]["better"] is None
    assert load_model(later).n_windows == 450


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--update", "m"], "give --data FILE, the new rows"),
        (["--data", "m"], "give --update MODEL"),
        (["--update", "m", "--data", "m", "--learn", "monday"], "--learn 'monday' is no stretch"),
        (["--update", "m", "--data", "m", "--window", "5s"], "--window is settled by the model"),
        ([], "give FILE..., a history to calibrate on"),
        (["m"], "give --out MODEL"),
    ],
)
def test_what_lacks_or_is_too_much_is_said_in_one_line(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m").write_text("")
    assert run(["calibrate", *arguments]) == 2
    assert message in capsys.readouterr().err
