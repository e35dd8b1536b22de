"""Sources over the network and growing files, which feed plants.

`settings.AnySettings` lists the kinds, `make_feed` makes the `Feed` of one;
docs/how-to/sources.md says how to add one.
"""

from eccaht.service.sources.feed import Feed as Feed, Sink as Sink, Target as Target, make_feed as make_feed
from eccaht.service.sources.library import SourceFeed as SourceFeed
from eccaht.service.sources.settings import AnySettings as AnySettings, read_settings as read_settings
