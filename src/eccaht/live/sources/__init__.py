"""Sources over the network and growing files, which feed plants; see `make_feed`."""

from eccaht.live.sources.feed import Feed, Positions, Shared, Sink, Target
from eccaht.live.sources.library import Excerpt, SourceFeed
from eccaht.live.sources.make import make_feed
from eccaht.live.sources.settings import AnySettings, read_settings

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
