"""`--import MODULE`: policies of the user's own, registered before names are looked up."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module, util
from pathlib import Path
from typing import Annotated

from eccaht.cli.output import option

Imports = Annotated[
    list[str] | None, option("MODULE", "A module or .py file that registers policies of your own. Repeat.", "--import")
]


def import_policies(modules: Sequence[str] | None) -> None:
    """Import them, or say in one line what is wrong."""
    if not modules:
        return
    from eccaht.base.presentation.text import explained  # most commands do without
    from eccaht.streams.policies.registry import own_entries

    for module in modules:
        name = _file_as_module(Path(module)) if module.endswith(".py") else _as_module(module)
        if name in sys.modules:
            continue
        before = own_entries()
        try:
            import_module(name)
        except (Exception, SystemExit) as error:  # code of others may end in any way
            raise ValueError(f"--import {module} cannot be imported: {explained(error)}") from error
        if own_entries() == before:
            raise ValueError(f"--import {module} registers no policy: it should call eccaht.register_policy")


def _as_module(name: str) -> str:
    if not all(part.isidentifier() for part in name.split(".")):
        raise ValueError(f"--import {name} is neither the name of a module nor a file that ends in .py")
    _look_in(os.getcwd())
    return name


def _file_as_module(path: Path) -> str:
    """The name under which a file is imported: it must be that of no other module."""
    if not path.is_file():
        raise ValueError(f"--import {path}: there is no such file")
    _look_in(str(path.resolve().parent))
    loaded = sys.modules.get(path.stem)
    found = None if "." in path.stem else util.find_spec(path.stem) if loaded is None else loaded.__spec__
    if found is None or found.origin is None or not path.samefile(found.origin):
        raise ValueError(f"--import {path} has the name of another module, or none that can be imported: rename it")
    return path.stem


def _look_in(folder: str) -> None:
    """As Python does for scripts, but after all else, so that nothing in the folder replaces a known module."""
    if folder not in sys.path:
        sys.path.append(folder)
