"""The page and its own files: compressed once, and kept by browsers for good.

The page names its files under an address that changes with their content, so that a browser asks for each of them once
and has the new ones all together after an upgrade.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

PREFIX = "/static/"
PLOTLY = "plotly.min.js"
_PAGE = Path(__file__).parent.parent / "page"
_INDEX = "index.html"
_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".html": "text/html; charset=utf-8",
}
_SMALL = 500  # bytes that are not worth the work
_FOR_EVER, _ASK = "public, max-age=31536000, immutable", "no-cache"  # no-cache: keep it, and ask whether it holds


@dataclass(frozen=True)
class File:
    """A file as it is sent; plain: its bytes, or where they are."""

    plain: bytes | Path
    packed: bytes | None
    media: str
    tag: str


def install(app: Starlette) -> None:
    """Add the page and its files to an app."""
    app.router.routes.append(Route("/", _index, include_in_schema=False))
    app.router.routes.append(Route(PREFIX + "{name}", _file, include_in_schema=False))
    app.router.routes.append(Route(PREFIX + "{build}/{name}", _file, include_in_schema=False))


def _index(request: Request) -> Response:
    if not (_PAGE / _INDEX).is_file():
        return PlainTextResponse("eccaht: see /openapi.json")
    return _answer(request, _page(), _ASK)


def _file(request: Request) -> Response:
    name = request.path_params["name"]
    if name == PLOTLY:
        found = _plotly()
        if found is None:
            return JSONResponse({"detail": "plotly is not installed: pip install 'eccaht[live]'"}, 404)
    elif (found := _files().get(name)) is None:
        return JSONResponse({"detail": f"the page has no file {name[:80]!r}"}, 404)
    # a page that was opened before an upgrade asks for files of its own build, and gets those that there are
    return _answer(request, found, _FOR_EVER if request.path_params.get("build") == _build() else _ASK)


def _answer(request: Request, file: File, kept: str) -> Response:
    headers = {"Cache-Control": kept, "ETag": file.tag, "Vary": "Accept-Encoding"}
    if file.tag in (tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")):
        return Response(status_code=304, headers=headers)
    if file.packed is not None and takes_gzip(request.headers.get("accept-encoding", "")):
        return Response(file.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=file.media)
    if isinstance(file.plain, Path):
        return FileResponse(file.plain, headers=headers, media_type=file.media)
    return Response(file.plain, headers=headers, media_type=file.media)


def takes_gzip(accepted: str) -> bool:
    """Whether a client takes gzip, by its Accept-Encoding.

    >>> [takes_gzip(text) for text in ("gzip, br", "br;q=1.0, GZIP;q=0.5", "gzip;q=0", "identity", "")]
    [True, True, False, False, False]
    """
    for part in accepted.lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() == "gzip":
            return weight.replace(" ", "").rstrip("0").rstrip(".") != "q="
    return False


@cache
def _files() -> dict[str, File]:
    """All files of the page but for the page itself."""
    paths = sorted(path for path in _PAGE.glob("*") if path.suffix in _TYPES and path.name != _INDEX)
    return {path.name: _made(path.read_bytes(), path.suffix) for path in paths}


@cache
def _build() -> str:
    """A name for the content of all files together."""
    script = _plotly_path()
    about = [f"{name} {file.tag}" for name, file in _files().items()]
    if script is not None:
        about.append(f"{PLOTLY} {script.stat().st_size} {script.stat().st_mtime_ns}")
    return hashlib.sha256("\n".join(about).encode()).hexdigest()[:16]


@cache
def _page() -> File:
    text = (_PAGE / _INDEX).read_text(encoding="utf-8")
    return _made(text.replace(f'"{PREFIX}', f'"{PREFIX}{_build()}/').encode(), ".html")


@cache
def _plotly() -> File | None:
    """The charts library, of which only the compressed form is kept in memory; in the first request after a start."""
    script = _plotly_path()
    if script is None:
        return None
    content = script.read_bytes()
    return File(script, gzip.compress(content, 6, mtime=0), _TYPES[".js"], _tag(content))


def _plotly_path() -> Path | None:
    found = find_spec("plotly")
    script = None if found is None or found.origin is None else Path(found.origin).parent / "package_data" / PLOTLY
    return script if script is not None and script.is_file() else None


def _made(content: bytes, suffix: str) -> File:
    packed = gzip.compress(content, 9, mtime=0) if len(content) > _SMALL else None
    return File(content, packed, _TYPES[suffix], _tag(content))


def _tag(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'
