"""What holds for all tests of the service."""

from collections.abc import Iterator

import pytest

from eccaht.service.store import Store
from tests.service import asking, stores


@pytest.fixture(scope="session", params=stores.KINDS)
def _opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with stores.opened(request.param, tmp_path_factory.mktemp("store")) as store:
        yield store


@pytest.fixture
def store(_opened: Store) -> Store:
    """An empty store of each kind."""
    stores.emptied(_opened)
    return _opened


@pytest.fixture(autouse=True)
def _no_client_stays_open() -> Iterator[None]:
    yield
    asking.close_all()
