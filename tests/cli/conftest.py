"""What holds for all tests of commands."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _plain_pictures(plain_pictures: None) -> None:
    """What pictures look like is told elsewhere."""
