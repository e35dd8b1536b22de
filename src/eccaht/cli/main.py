"""The entry point `eccaht`: commands, and what a user sees when something is wrong."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated

import typer

from eccaht import __version__
from eccaht.cli import signals
from eccaht.cli.calibrate import calibrate
from eccaht.cli.compare import compare
from eccaht.cli.count_errors import calibration
from eccaht.cli.demo import demo
from eccaht.cli.diagnose import diagnose
from eccaht.cli.example import example
from eccaht.cli.identify import identify
from eccaht.cli.limits import limits
from eccaht.cli.policies import policies
from eccaht.cli.report import report
from eccaht.cli.reproduce import reproduce
from eccaht.cli.smd import smd
from eccaht.cli.usage import UsageError, described
from eccaht.cli.wadi import wadi
from eccaht.cli.water import water
from eccaht.extras import MissingExtra
from eccaht.files import NotWritten

NOT_WRITTEN, BAD_INPUT = 1, 2  # beside 0, and 130 and 143 after a signal
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo)
app.command()(policies)
app.command()(compare)
app.command()(reproduce)
app.command()(report)
app.command()(calibrate)
app.command()(diagnose)
app.command()(limits)
app.command()(calibration)
app.command()(identify)
app.command()(example)
app.command()(wadi)
app.command()(water)
app.command()(smd)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"eccaht {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Find which few of many correlated sensor streams are anomalous with as few measurements as possible."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(arguments: Sequence[str]) -> int:
    """Run one command and return the exit code; what went wrong is one line on stderr, never a traceback.

    1: what was found is told, but not all of it could be written; 2: bad input; 130 and 143: ended by a signal.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # an odd file name must not end a finished run
    try:
        code = _commands()(list(arguments), prog_name="eccaht", standalone_mode=False)
        sys.stdout.flush()  # here, where a closed pipe can still be handled
    except UsageError as error:
        return _complain(described(error), BAD_INPUT)
    except BrokenPipeError:
        _forget_output()
        return NOT_WRITTEN
    except NotWritten as error:
        return _complain(str(error), NOT_WRITTEN)
    except OSError as error:
        if error.filename is None and error.errno in _FULL:  # of a file the name would be known
            _forget_output()
            return _complain(f"cannot write standard output: {error.strerror}", NOT_WRITTEN)
        return _complain(_said(error), BAD_INPUT)
    except (ValueError, ArithmeticError, MissingExtra) as error:
        return _complain(str(error) or type(error).__name__, BAD_INPUT)
    except signals.Terminated:
        code = signals.TERMINATED
    except (KeyboardInterrupt, typer.Abort):
        code = signals.INTERRUPTED
    if code in (signals.INTERRUPTED, signals.TERMINATED):  # typer turns Ctrl-C into the first
        signals.ignore()
        return _complain("interrupted" if code == signals.INTERRUPTED else "terminated", code)
    return code if isinstance(code, int) else 0


@cache
def _commands() -> Callable[..., object]:
    """The commands with their options, which take a while to put together."""
    return typer.main.get_command(app)


def _said(error: OSError) -> str:
    if error.strerror is None:
        return str(error)
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"


def _forget_output() -> None:
    """Let what is left of the output go nowhere, or the exit of Python flushes and fails again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str, code: int) -> int:
    """Say it in one line, whatever the message was made of."""
    print("eccaht:", " ".join(message.split()), file=sys.stderr)
    return code
