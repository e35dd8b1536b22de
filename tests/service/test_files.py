"""The page's own files: as they are, and kept by browsers while they hold."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from eccaht.service.api import files
from eccaht.service.api.app import make_app
from eccaht.service.settings import Settings
from tests.service.asking import Client

PAGE = Path(files.__file__).parent.parent / "page"


@pytest.fixture(scope="module")
def asks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    client = Client(make_app(Settings(store={"url": f"sqlite:///{tmp_path_factory.mktemp('files') / 'x.db'}"})))
    with client:
        yield client
    client.close()


@pytest.mark.parametrize("path", sorted(PAGE.glob("*")), ids=lambda path: path.name)
def test_every_file_arrives_as_it_is(asks: Client, path: Path) -> None:
    if path.name == "index.html":
        return
    answer = asks.get(f"/static/{path.name}")
    assert answer.content == path.read_bytes()
    assert answer.headers["content-type"].partition(";")[0] in ("text/javascript", "text/css", "image/svg+xml")
    assert answer.headers["cache-control"] == "no-cache"


def test_the_script_of_charts_is_that_of_the_wheel(asks: Client) -> None:
    spec = find_spec("plotly")
    assert spec is not None
    assert spec.origin is not None
    content = (Path(spec.origin).parent / "package_data" / files.PLOTLY).read_bytes()
    assert asks.get("/static/plotly.min.js").content == content


def test_what_a_browser_has_already_is_not_sent_again(asks: Client) -> None:
    for path in ("/", "/static/app.js", "/static/plotly.min.js"):
        tag = asks.get(path).headers["etag"]
        again = asks.get(path, headers={"If-None-Match": f'"other", W/{tag}'})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        assert asks.get(path, headers={"If-None-Match": '"other"'}).status_code == 200


def test_nothing_but_files_of_the_page_is_given_away(asks: Client) -> None:
    for name in ("%2e%2e", "../settings.py", "%2e%2e%2fsettings.py", "x/y/z", ""):
        assert asks.get(f"/static/{name}").status_code == 404, name
