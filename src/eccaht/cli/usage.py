"""What is said of a command line that cannot be understood."""

from __future__ import annotations

import typer

from eccaht.naming import nearest

# typer brings its own copy of click in some versions: reach the base of its usage errors without naming the module
UsageError: type[typer.BadParameter] = typer.BadParameter.__mro__[1]


def described(error: typer.BadParameter) -> str:
    """What is wrong; of an option that does not exist, the nearest one and then all that there are."""
    command = error.ctx.command_path if error.ctx else "eccaht"
    mistyped = getattr(error, "option_name", None)
    if mistyped is None or error.ctx is None:
        return f"{error.format_message()} (see '{command} --help')"
    options = [name for param in error.ctx.command.params for name in param.opts if name.startswith("--")]
    near = nearest(mistyped, options, cutoff=0.6)
    meant = "." if near is None else f": did you mean {near}?"
    listed = ", ".join(sorted(options, key=lambda name: name != near))
    return f"'{command}' has no option {mistyped}{meant} It takes {listed} (see '{command} --help')"
