"""The page and its own files, and the script of charts that the wheel of plotly ships.

Browsers keep them, and ask whether they still hold; a proxy in front of the service compresses them.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

PLOTLY = "plotly.min.js"
_PAGE = Path(__file__).parent.parent / "page"


class _Files(StaticFiles):
    def file_response(self, *given: Any, **more: Any) -> Response:
        """A file, or that the browser has it."""
        answer = super().file_response(*given, **more)
        answer.headers["Cache-Control"] = "no-cache"
        return answer


_FILES = _Files(directory=_PAGE)


def install(app: Starlette) -> None:
    """Add the page and its files to an app."""
    app.router.routes.append(Route("/", _index, include_in_schema=False))
    app.router.routes.append(Route(f"/static/{PLOTLY}", _plotly, include_in_schema=False))
    app.router.routes.append(Mount("/static", _FILES))


async def _index(request: Request) -> Response:
    return await _FILES.get_response("index.html", request.scope)


async def _plotly(request: Request) -> Response:
    found = find_spec("plotly")
    if found is None or found.origin is None:
        return JSONResponse({"detail": "plotly is not installed: pip install 'eccaht[live]'"}, 404)
    return await _Files(directory=Path(found.origin).parent / "package_data").get_response(PLOTLY, request.scope)
