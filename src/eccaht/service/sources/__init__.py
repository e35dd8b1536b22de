"""Sources over the network and growing files, which feed plants.

`settings.AnySettings` lists the kinds, `make_feed` makes the `Feed` of one;
docs/how-to/own-source.md says how to add one.
"""

from eccaht.service.sources.feed import Feed, Sink, Target, make_feed
from eccaht.service.sources.library import SourceFeed
from eccaht.service.sources.settings import AnySettings, read_settings

__all__ = [
    "AnySettings",
    "Feed",
    "Sink",
    "SourceFeed",
    "Target",
    "make_feed",
    "read_settings",
]
