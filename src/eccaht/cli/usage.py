"""What is said of a command line that cannot be understood."""

from __future__ import annotations

from difflib import get_close_matches

import typer

# typer brings its own copy of click in some versions: reach the base of its usage errors without naming the module
UsageError: type[typer.BadParameter] = typer.BadParameter.__mro__[1]


def described(error: typer.BadParameter) -> str:
    """What is wrong; of an option that does not exist, the nearest one and then all that there are."""
    command = error.ctx.command_path if error.ctx else "eccaht"
    mistyped = getattr(error, "option_name", None)
    if mistyped is None or error.ctx is None:
        return f"{error.format_message()} (see '{command} --help')"
    options = [name for param in error.ctx.command.params for name in param.opts if name.startswith("--")]
    near = get_close_matches(mistyped, options, n=1, cutoff=0.6)
    meant = f": did you mean {near[0]}?" if near else "."
    listed = ", ".join(dict.fromkeys([*near, *options]))
    return f"'{command}' has no option {mistyped}{meant} It takes {listed} (see '{command} --help')"
