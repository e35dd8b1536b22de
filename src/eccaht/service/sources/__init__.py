"""Sources over the network and growing files, which feed plants; see `make_feed`."""

from eccaht.service.sources.feed import Feed, Positions, Shared, Sink, Target
from eccaht.service.sources.library import Excerpt, SourceFeed
from eccaht.service.sources.make import make_feed
from eccaht.service.sources.settings import AnySettings, read_settings

__all__ = [
    "AnySettings",
    "Excerpt",
    "Feed",
    "Positions",
    "Shared",
    "Sink",
    "SourceFeed",
    "Target",
    "make_feed",
    "read_settings",
]
