"""The entry point `eccaht`: commands, and what a user sees when something is wrong."""

import errno
import io
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
import typer.core

from eccaht.base.extras import advice
from eccaht.cli import signals
from eccaht.version import __version__

NOT_WRITTEN, BAD_INPUT = 1, 2  # beside 0, and 130 and 143 after a signal
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
# typer brings its own copy of click in some versions: reach the base of its usage errors without naming the module
UsageError: type[typer.BadParameter] = typer.BadParameter.__mro__[1]
# what the list of commands says of each: the first line of its own help
PANELS = {
    "Plants": {
        "example": "Write sensor data of a small simulated plant, to try with.",
        "calibrate": "Turn a history of normal operation into a model.",
        "identify": "Name the sensors that are wrong, with the evidence.",
        "drill": "Estimate how well faults would be found, on your own quiet data.",
        "watch": "Watch a plant round the clock and report what goes wrong.",
    },
    "Searches": {
        "demo": "Watch a search for 3 anomalous streams among 15, and draw it.",
        "policies": "List the algorithms and where they come from.",
        "compare": "Compare policies on the same simulated anomalies.",
        "count-errors": "Count how often a stopping rule errs on your problem.",
    },
    "Service": {
        "serve": "Watch plants round the clock, and show on a page what goes wrong.",
        "token": "Create, list and revoke the tokens of the service.",
        "store": "Back up what the service keeps, and restore it.",
    },
    "Paper": {
        "reproduce": "Run the paper's experiments and draw their figures.",
        "report": "Write the report on the results in DIR.",
        "wadi": "Name the attacked points of the WaDi testbed.",
        "water": "Attack sensors of a simulated water network and find them.",
        "data": "Fetch public collections of known incidents, ready for 'eccaht incidents'.",
        "incidents": "Measure how well alarms find known incidents and how often their sensors are named.",
    },
}
COMMANDS = {name: summary for panel in PANELS.values() for name, summary in panel.items()}
_SETTINGS: dict[str, Any] = {
    "add_completion": False,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


def load(command: str) -> Callable[..., None]:
    """What carries out a command, imported once it is asked for: each of them needs other packages."""
    name = command.replace("-", "_")
    function: Callable[..., None] = getattr(import_module(f"eccaht.cli.{name}"), name)
    return function


class _Commands(typer.core.TyperGroup):
    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        for title, commands in PANELS.items():
            with formatter.section(title):
                formatter.write_dl(commands.items())

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        alone = typer.Typer(**_SETTINGS)
        alone.command(name)(load(str(name)))
        return name, typer.main.get_command(alone), rest


app = typer.Typer(cls=_Commands, **_SETTINGS)
for _name, _summary in COMMANDS.items():
    app.command(_name, help=_summary)(lambda: None)


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
    """Finds the few wrong sensors among many correlated ones by differences that cancel the noise they share."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(arguments: Sequence[str]) -> int:
    """Run one command and return the exit code; what went wrong is one line on stderr, never a traceback.

    1: the result was printed, but not every file could be written; 2: bad input; 130 and 143: ended by a signal.
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
        command = error.ctx.command_path if error.ctx else "eccaht"
        return _complain(f"{error.format_message()} (see '{command} --help')", BAD_INPUT)
    except BrokenPipeError:
        _forget_output()
        return NOT_WRITTEN
    except OSError as error:
        from eccaht.base.files import NotWritten  # here, because it loads numpy, for which no help should wait

        if isinstance(error, NotWritten):
            return _complain(str(error), NOT_WRITTEN)
        if error.filename is None and error.errno in _FULL:  # of a file the name would be known
            _forget_output()
            return _complain(f"cannot write standard output: {error.strerror}", NOT_WRITTEN)
        return _complain(_said(error), BAD_INPUT)
    except (ValueError, ArithmeticError) as error:
        return _complain(str(error) or type(error).__name__, BAD_INPUT)
    except ImportError as error:
        if (missing := advice(error.name)) is None:
            raise
        return _complain(missing, BAD_INPUT)
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
    print("eccaht:", " ".join(message.split()), file=sys.stderr)
    return code
