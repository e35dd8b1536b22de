"""Rows from a CSV file that grows; rotation and rewriting are the library's business (`eccaht.plants.data.growing`)."""

from __future__ import annotations

from dataclasses import replace

from eccaht.plants.data.growing import GrowingFile
from eccaht.service.sources.feed import Sink, Target
from eccaht.service.sources.library import Note, SourceFeed
from eccaht.service.sources.settings import FileSettings


def file_feed(name: str, settings: FileSettings, target: Target, sink: Sink) -> SourceFeed:
    zone = settings.timezone or target.clock.zone
    expected = replace(target.expected, zone=zone, decimal_comma=settings.decimal_comma)

    def opened(note: Note) -> GrowingFile:
        return GrowingFile(settings.path, expected, missing=settings.missing, poll=settings.poll, note=note)

    return SourceFeed(name, opened, target, sink, where=str(settings.path), overlap=settings.overlap)
