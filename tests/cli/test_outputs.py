"""No command writes onto an input or onto anything but a regular file, and a full disk costs no finding."""

import inspect
import io
import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from eccaht.cli.main import COMMANDS, load, run
from eccaht.cli.output import writable_directory
from eccaht.plants.example import STATUS, write_example
from eccaht.plants.model.calibration import calibrate
from eccaht.research.paper import figures
from tests.base.test_files import full_disk, odd_file
from tests.research.datasets.labelled_format import write_collection
from tests.research.datasets.wadi_format import plant, write

SEARCH = ["--anomalies", "3", "--shift", "1"]
# command -> its arguments, the options that name files to write with their endings, its inputs
FILES: dict[str, tuple[list[str], dict[str, str], list[str]]] = {
    "calibrate": (["history.csv", "more.csv"], {"--out": ".model"}, ["history.csv", "more.csv"]),
    "drill": (["plant.model", "--data", "a.csv"], {"--out": ".model", "--plot": ".png"}, ["a.csv"]),
    "identify": (
        ["--model", "plant.model", "--data", "a.csv", "--data", "b.csv"],
        {"--html": ".html", "--plot": ".svg"},
        ["plant.model", "a.csv", "b.csv"],
    ),
    "watch": (
        ["--model", "plant.model", "--data", "a.csv"],
        {"--state": ".state", "--log": ".jsonl"},
        ["plant.model", "a.csv"],
    ),
    "compare": ([], {"--plot": ".png"}, []),
}
CASES = [(command, option) for command, (_, options, _) in FILES.items() for option in options]
# command -> its arguments before the directory, and a file that it writes there
DIRECTORIES = {
    "demo": (["demo", "--out"], "fig1.png"),
    "example": (["example", "--out"], "history.csv"),
    "reproduce": (["reproduce", "fig5a", "--out"], "fig5a/cells/0-ecc-aht.parquet"),
    "report": (["report"], "report.html"),
    "incidents": (["incidents", "servers", "--out"], "summary.csv"),
    "data": (["data", "fetch", "smd", "--from", "archive", "--out"], "source.json"),
    "wadi": (["wadi", "plant", "--out"], "fig4b.csv"),
    "water": (["water", "--out"], "history.csv"),
}
READ_ONLY = {"policies", "count-errors"}
SERVICE = {"serve", "token", "store"}  # write a store: tests/service looks at them


def test_every_command_is_looked_at() -> None:
    assert {*COMMANDS} == {*FILES, *DIRECTORIES, *READ_ONLY, *SERVICE}
    options = {"out", "html", "plot", "state", "log"}  # all that name something to write
    for name in COMMANDS:
        taken = options & {*inspect.signature(load(name)).parameters}
        known = DIRECTORIES[name][0][-1:] if taken and name in DIRECTORIES else []
        known = [*known, *(FILES[name][1] if name in FILES else ())]
        assert {f"--{option}" for option in taken} == set(known)


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The line with which a command refuses, with nothing done."""
    before = {path: (path.lstat().st_mtime_ns, path.lstat().st_ino) for path in Path().rglob("*") if not path.is_dir()}
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    after = {path: (path.lstat().st_mtime_ns, path.lstat().st_ino) for path in Path().rglob("*") if not path.is_dir()}
    assert after == before
    return err


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("command", "option"), CASES)
def test_an_output_is_no_input_under_any_name(
    command: str, option: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, options, inputs = FILES[command]
    for name in inputs:
        Path(name).write_bytes(b"not even read")
    ending = options[option]
    for k, name in enumerate(inputs):
        soft, hard, chain = (place / f"{kind}{k}{ending}" for kind in ("soft", "hard", "chain"))
        soft.symlink_to(name)
        hard.hardlink_to(name)
        chain.symlink_to(soft)
        for output in (hard, chain):
            assert f"{option} {output} would overwrite " in refused([command, *arguments, option, str(output)], capsys)
        assert Path(name).read_bytes() == b"not even read"


@pytest.mark.parametrize(("command", "option"), CASES)
@pytest.mark.usefixtures("place")
def test_an_output_is_a_regular_file_in_a_directory(
    command: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, options, inputs = FILES[command]
    for name in (*inputs, "file"):
        Path(name).touch()
    for kind in ("a directory", "a pipe", "a device"):
        output = odd_file(kind, Path(f"{kind.split()[1]}{options[option]}"))
        assert f"{option} {output} is {kind}: give" in refused([command, *arguments, option, str(output)], capsys)
    for nowhere in ("none", "file"):
        inside = f"{nowhere}/x{options[option]}"
        assert f"{option} {inside}" in refused([command, *arguments, option, inside], capsys)


@pytest.mark.usefixtures("place")
def test_two_outputs_are_two_files(capsys: pytest.CaptureFixture[str]) -> None:
    Path("b.model").symlink_to("a.png")
    arguments = ["drill", "plant.model", "--data", "a.csv", "--plot", "a.png", "--out", "b.model"]
    assert "--out b.model would overwrite --plot a.png" in refused(arguments, capsys)


def test_neither_an_input_nor_a_device_is_replaced_under_its_own_name(
    capsys: pytest.CaptureFixture[str], place: Path
) -> None:
    (place / "h.csv").touch()
    assert "--out /dev/null is a device" in refused(["calibrate", "h.csv", "--out", os.devnull], capsys)
    for name in ("h.csv", "./h.csv", str(place / "h.csv")):
        assert f"--out {Path(name)} would overwrite FILE h.csv" in refused(
            ["calibrate", "h.csv", "--out", name], capsys
        )


def directory_arguments(command: str) -> list[str]:
    """The arguments, with the inputs they need."""
    if command == "water" and find_spec("wntr") is None:
        pytest.skip("the extra [water] is not installed")
    if command == "data":
        Path("archive").mkdir()
    if command == "incidents":
        write_collection(Path("servers"), ["a"])
    if command == "wadi":
        Path("plant").mkdir()
        write(Path("plant"), "2017", plant(50, seed=3, hour=18), plant(50, seed=4, hour=18))
    return DIRECTORIES[command][0]


@pytest.mark.parametrize("command", DIRECTORIES)
@pytest.mark.usefixtures("place")
def test_files_of_a_directory_are_regular_too(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, name = directory_arguments(command), Path(DIRECTORIES[command][1])
    for kind in ("a directory", "a pipe", "a device"):
        out = Path(kind.split()[1])
        (out / name).parent.mkdir(parents=True)
        odd_file(kind, out / name)
        assert f"{out / name} is {kind}: give" in refused([*arguments, str(out)], capsys)
    if command != "report":
        Path("file").touch()
        assert "is a file: give a directory" in refused([*arguments, "file"], capsys)


@pytest.mark.parametrize("command", ["incidents", "wadi", "report"])
@pytest.mark.usefixtures("place")
def test_files_of_a_directory_are_no_inputs(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = directory_arguments(command)
    if command == "report":
        Path("out/fig2/cells").mkdir(parents=True)
        Path("out/fig2/cells/0-joint.parquet").touch()
    where = {
        "incidents": "servers/test/a.csv.gz",
        "wadi": "plant/WADI_attackdata.csv",
        "report": "out/fig2/cells/0-joint.parquet",
    }
    Path("out").mkdir(exist_ok=True)
    link = Path("out") / DIRECTORIES[command][1]
    link.hardlink_to(where[command])
    assert f"{link} would overwrite" in refused([*arguments, "out"], capsys)


# -- a full disk ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plant_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("plant")
    history, *_ = write_example(directory)
    calibrate([history], exclude=[STATUS], window="5min").save(directory / "plant.model")
    write_collection(directory / "servers", ["a"])
    return directory


IDENTIFY = ["identify", "--model", "PLANT/plant.model", "--data", "PLANT/incident.csv"]
LITTLE = ["--runs", "2", "--horizon", "5", "--jobs", "1"]
QUICK = ["--window", "5min", "--no-drill"]
SMALL = ["--anomalies", "1", *LITTLE, "--policies", "ecc-aht"]
# arguments, what is found all the same, the files that are lost
LOST: dict[str, tuple[list[str], str, list[str]]] = {
    "calibrate": (["calibrate", "PLANT/history.csv", *QUICK, "--out", "m"], "sensors kept", ["m"]),
    "page": ([*IDENTIFY, "--html", "page.html"], "named", ["page.html"]),
    "both": ([*IDENTIFY, "--html", "page.html", "--plot", "p.png"], "named", ["p.png", "page.html"]),
    "compare": (["compare", "--streams", "8", *SMALL, "--plot", "p.png"], "final F1", ["p.png"]),
    "demo": (["demo", "--out", "d"], "Named ", ["d/fig1.pdf"]),
    "incidents": (
        ["incidents", "PLANT/servers", "--runs", "2", "--jobs", "1", "--methods", "z-mean", "--out", "d"],
        "servers: 1 part",
        ["d/summary.csv"],
    ),
}


@pytest.mark.parametrize(
    ("case", "as_json"), [*((case, False) for case in LOST), ("calibrate", True), ("both", True), ("demo", True)]
)
def test_what_was_found_is_printed_if_it_cannot_be_written(
    case: str,
    as_json: bool,
    plant_files: Path,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(figures, "draw_search", lambda _: Figure(figsize=(1, 1)))
    arguments, found, lost = LOST[case]
    arguments = [word.replace("PLANT", str(plant_files)) for word in arguments]
    with full_disk(8):
        assert run([*arguments, "--json"] if as_json else arguments) == 1
    out, err = capsys.readouterr()
    assert err == f"eccaht: cannot write {', '.join(lost)}: File too large\n"
    if as_json:
        document = json.loads(out)
        assert document["model"] is None if case == "calibrate" else document["files"] == []
    else:
        assert found in out
        assert "Saved" not in out
    assert not [path for path in place.rglob("*") if path.is_file()]


class _Closed(io.StringIO):
    """Standard output that no process reads any more."""

    def write(self, text: str) -> int:  # noqa: ARG002
        raise BrokenPipeError


def test_files_are_written_though_no_process_reads_what_is_printed(
    plant_files: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout", _Closed())
    monkeypatch.setattr("eccaht.cli.main._forget_output", lambda: None)
    assert run(["calibrate", str(plant_files / "history.csv"), *QUICK, "--out", "m"]) == 1
    assert (place / "m").is_file()


def test_streams_that_are_closed_are_no_obstacle(
    plant_files: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(f"sys.{name}", None)
    assert run(["calibrate", str(plant_files / "history.csv"), *QUICK, "--out", "m"]) == 0
    assert (place / "m").is_file()
    sys.stdout.close()
    sys.stderr.close()


def test_what_could_be_written_is_listed(plant_files: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [word.replace("PLANT", str(plant_files)) for word in IDENTIFY]
    with full_disk(40_000):
        assert run([*arguments, "--plot", "p.png", "--html", "page.html", "--json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["files"] == ["p.png"]
    assert err == "eccaht: cannot write page.html: File too large\n"
    assert [path.name for path in place.iterdir()] == ["p.png"]


@pytest.mark.usefixtures("place")
def test_results_that_cannot_be_written_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(figures, "draw", lambda _: Figure(figsize=(1, 1)))
    for arguments, lost in (
        (["example"], "example/history.csv"),
        (["reproduce", "table1"], "results/table1/spec.json"),
    ):
        with full_disk(8):
            assert run(arguments) == 1
        assert capsys.readouterr().err.endswith(f"eccaht: cannot write {lost}: File too large\n")
    assert run(["reproduce", "table1", "--jobs", "1"]) == 0
    capsys.readouterr()
    with full_disk(8):
        assert run(["report", "results"]) == 1
    assert "eccaht: cannot write results/claims/verdicts.csv" in capsys.readouterr().err
    assert not [*Path().rglob("*.part")]


def test_results_that_are_listed_once_are_kept_from_every_file(tmp_path: Path) -> None:
    (tmp_path / "report.md").touch()
    with pytest.raises(ValueError, match=r"report\.md would overwrite"):
        writable_directory(tmp_path, "DIR", ["report.html", "report.md"], {"the results in": tmp_path.glob("*.md")})
