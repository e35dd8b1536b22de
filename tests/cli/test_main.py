"""What a user sees when something is wrong, and when nothing is asked."""

import subprocess
import sys
from pathlib import Path

import pytest

from eccaht.cli.main import COMMANDS, PANELS, load, run
from eccaht.research.paper import fig1
from tests.cli.commands import refused


def eccaht_process(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "eccaht", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "arguments",
    [
        *(["polices"], ["--bogus"], ["demo", "--bogus"], ["demo", "--seed", "x"], ["demo", "--seed", "-1"]),
        *(["demo", "surplus"], ["policies", "--seed", "1"], ["demo", "--out", "taken"], ["demo", "--out", "taken/in"]),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("taken").write_text("kept")
    monkeypatch.setattr(fig1, "trace", lambda _: pytest.fail("work began before the input was checked"))
    refused(arguments, capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_process_exits_with_2_and_without_traceback(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    done = eccaht_process("demo", "--out", "taken", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "eccaht: --out taken is a file: give a directory\n"


@pytest.mark.parametrize(
    "error",
    [
        ValueError("several\nlines"),
        ArithmeticError("no solution"),
        ZeroDivisionError(),
        PermissionError(13, "Permission denied", "somewhere"),
        OSError("device gone"),
    ],
)
def test_errors_of_the_library_are_one_line(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(seed: int) -> None:  # noqa: ARG001
        raise error

    monkeypatch.setattr(fig1, "trace", fail)
    err = refused(["demo", "--out", str(tmp_path)], capsys)
    assert len(err) > len("eccaht: \n")
    assert "Errno" not in err


def test_interrupting_is_one_line_and_exit_code_130(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(seed: int) -> None:  # noqa: ARG001
        raise KeyboardInterrupt

    monkeypatch.setattr(fig1, "trace", interrupt)
    assert run(["demo", "--out", str(tmp_path)]) == 130
    assert capsys.readouterr().err == "eccaht: interrupted\n"


def test_mistakes_of_the_programmer_are_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fig1, "trace", lambda: None)  # takes no seed
    with pytest.raises(TypeError):
        run(["demo", "--out", str(tmp_path)])


def test_a_mistyped_option_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--anomalies" in refused(["identify", "--anomalie", "3"], capsys)
    assert "'policies'" in refused(["polices"], capsys)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_list_of_commands_says_what_their_own_help_begins_with(command: str) -> None:
    assert str(load(command).__doc__).splitlines()[0] == COMMANDS[command]


def test_the_help_loads_no_numerical_library(tmp_path: Path) -> None:
    code = "import sys; from eccaht.cli.main import run; run(['--help']); sys.exit('scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    command = f"'{sys.executable}' -m eccaht policies --json | true"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_listing_policies_does_not_load_the_drawing_library(tmp_path: Path) -> None:
    code = "import sys; from eccaht.cli.main import run; run(['policies']); sys.exit('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0


def test_the_help_lists_every_command_in_its_panel(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    listed = capsys.readouterr().out
    assert run(["--help"]) == 0
    assert capsys.readouterr().out == listed
    places = [listed.index(f"\n{title}:\n") for title in PANELS]
    assert places == sorted(places)
    assert all(f"\n  {command} " in listed for command in COMMANDS)
    assert all(len(line) <= 80 for line in listed.splitlines())
