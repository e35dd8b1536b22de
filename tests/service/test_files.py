"""The page's own files: compressed, kept by browsers for good, and new as soon as one of them is."""

from __future__ import annotations

import re
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


def build_of(asks: Client) -> str:
    found = set(re.findall(r'"/static/([0-9a-f]{16})/', asks.get("/").text))
    assert len(found) == 1
    return str(found.pop())


def test_files_of_a_build_are_kept_for_good_and_those_without_one_are_asked_for(asks: Client) -> None:
    build = build_of(asks)
    for name in ("app.js", "style.css", "icon.svg", "plotly.min.js"):
        assert "immutable" in asks.get(f"/static/{build}/{name}").headers["cache-control"]
        for path in (f"/static/{name}", f"/static/0123456789abcdef/{name}"):
            assert asks.get(path).headers["cache-control"] == "no-cache"
    assert asks.get("/").headers["cache-control"] == "no-cache"  # else browsers would miss a new build


@pytest.mark.parametrize("path", sorted(PAGE.glob("*")), ids=lambda path: path.name)
def test_every_file_arrives_as_it_is_compressed_or_not(asks: Client, path: Path) -> None:
    if path.name == "index.html":
        return
    for accepted in ("gzip", "identity"):
        answer = asks.get(f"/static/{path.name}", headers={"Accept-Encoding": accepted})
        assert answer.content == path.read_bytes()
        assert answer.headers["content-type"].partition(";")[0] in ("text/javascript", "text/css", "image/svg+xml")


def test_the_charts_library_travels_at_a_third_of_its_size(asks: Client) -> None:
    spec = find_spec("plotly")
    assert spec is not None
    assert spec.origin is not None
    content = (Path(spec.origin).parent / "package_data" / files.PLOTLY).read_bytes()
    packed = asks.get("/static/plotly.min.js", headers={"Accept-Encoding": "gzip"})
    assert packed.content == content  # as the client unpacks it
    assert int(packed.headers["content-length"]) < len(content) / 3
    assert asks.get("/static/plotly.min.js", headers={"Accept-Encoding": "identity"}).content == content


def test_what_a_browser_has_already_is_not_sent_again(asks: Client) -> None:
    for path in ("/", "/static/app.js", "/static/plotly.min.js"):
        tag = asks.get(path).headers["etag"]
        again = asks.get(path, headers={"If-None-Match": f'"other", W/{tag}'})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        assert asks.get(path, headers={"If-None-Match": '"other"'}).status_code == 200


def test_nothing_but_files_of_the_page_is_given_away(asks: Client) -> None:
    for name in ("index.html", "%2e%2e", "../settings.py", "%2e%2e%2fsettings.py", "x/y/z", "", "app.js/"):
        assert asks.get(f"/static/{name}").status_code == 404, name


def test_another_content_is_another_build(asks: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = build_of(asks)
    for path in PAGE.glob("*"):
        (tmp_path / path.name).write_bytes(path.read_bytes() + (b"\n" if path.name == "dom.js" else b""))
    kept = (files._files, files._build, files._page)
    monkeypatch.setattr(files, "_PAGE", tmp_path)
    try:
        for cached in kept:
            cached.cache_clear()
        assert build_of(asks) != before
    finally:
        monkeypatch.undo()
        for cached in kept:
            cached.cache_clear()
    assert build_of(asks) == before
