"""Sources over the network and growing files, which feed plants.

`settings.AnySettings` lists the kinds, `make_feed` makes the `Feed` of one;
docs/how-to/own-source.md says how to add one.
"""

from eccaht.service.sources.feed import Feed, Positions, Shared, Sink, Target, make_feed
from eccaht.service.sources.library import Excerpt, SourceFeed
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
