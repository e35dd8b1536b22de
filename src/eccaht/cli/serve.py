"""`eccaht serve`: plants watched round the clock, with a page to look at."""

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from eccaht.cli.output import option


def serve(
    demo: Annotated[bool, option(None, "Show a simulated plant whose sensors fail now and then.", "--demo")] = False,
    host: Annotated[str | None, option("ADDRESS", "Listen here. [default: 127.0.0.1]")] = None,
    port: Annotated[int | None, option("P", "Listen on this port; 0: any that is free. [default: 8765]")] = None,
    store: Annotated[
        str | None, option("URL", "sqlite:///FILE or postgresql://HOST/DATABASE. [default: sqlite:///eccaht.db]")
    ] = None,
    config: Annotated[Path | None, option("FILE", "Settings, as TOML.")] = None,
    check: Annotated[bool, option(None, "Only check settings, store and models, and end.", "--check")] = False,
) -> None:
    """Watch plants round the clock, and show on a page what goes wrong.

    Rows come by HTTP and from the sources of the settings. Windows, states and events are kept in the store, so that a
    restart neither loses nor repeats one. Settings come from the file, the environment (ECCAHT_STORE__URL) and flags.
    """
    from eccaht.service.api.serving import run
    from eccaht.service.operations.check import faults  # as late as the work, which alone needs its packages
    from eccaht.service.settings import load_settings

    with ExitStack() as stack:
        listen = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
        flags: dict[str, Any] = {"demo": True} if demo else {}
        if demo and store is None and config is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="eccaht-demo-"))
            store = f"sqlite:///{folder}/demo.db"
            flags["security"] = {"open": True}  # there is nothing to see but the simulated plant
        flags |= {"listen": listen} if listen else {}
        flags |= {"store": {"url": store}} if store is not None else {}
        settings = load_settings(config, **flags)
        if check:
            if wrong := list(faults(settings)):
                raise ValueError("; ".join(wrong))
            typer.echo("Settings, store, models and sources are good.")
            return
        raise typer.Exit(run(settings))
