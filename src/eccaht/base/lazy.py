"""Public names of a package, imported when they are first used; the stub `__init__.pyi` beside it lists them once.

The command line must be ready for Ctrl-C, and a search able to start, before what only other tasks need is loaded.
For the same reason this file imports nothing large at its top.
"""

from __future__ import annotations

from sys import modules

from eccaht.base.extras import advice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def attach(
    package: str, file: str, hints: Mapping[str, str] | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for the `__init__` at `file`; `__all__` is the list of names in its stub.

    hints: what to write instead of names that are not there.
    """
    places: dict[str, str] = {}  # the module of each name, relative to the package

    def get(name: str) -> object:
        if not places:
            places.update(_listed(file + "i"))
        if name == "__all__":
            return [name for name in places if not name.startswith("_")]
        if name not in places:
            raise no_attribute(modules[package], f"module {package!r}", name, hints or {})
        from importlib import import_module

        place = places[name]
        try:
            module = import_module(place, package)
        except ModuleNotFoundError as error:
            if (missing := advice(error.name)) is None:
                raise
            raise ImportError(missing, name=error.name) from error
        return module if place == f".{name}" else getattr(module, name)

    return get, lambda: list(get("__all__"))  # type: ignore[call-overload]


def _listed(stub: str) -> dict[str, str]:
    """The names that a stub imports, sorted, and where from."""
    import ast

    with open(stub, encoding="utf-8") as file:
        imports = [node for node in ast.parse(file.read()).body if isinstance(node, ast.ImportFrom)]
    return dict(sorted((alias.name, f".{node.module or alias.name}") for node in imports for alias in node.names))


def no_attribute(owner: object, what: str, name: str, hints: Mapping[str, str]) -> AttributeError:
    """The error of a name that is not there, with its hint if it has one; what: the owner in words."""
    hint = f": {hints[name]}" if name in hints else ""
    return AttributeError(f"{what} has no {name!r}{hint}", name=name, obj=owner)
