"""Which events go out to people: one when a plant's state becomes alarm, one when it has ended, few while it flaps.

An episode begins with the first sensor that is wrong in any way, and ends once none was for a while, so that what flaps
is one episode. In it each way of being wrong is told when it begins, when it comes to concern more than twice as many
sensors as were told, and again when it begins anew, but at most once an hour. If the next episode begins within an hour
it is told as a repetition, and is over only after an hour.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from eccaht.base.clock import Clock
from eccaht.base.codec import Field
from eccaht.base.presentation.text import listed
from eccaht.plants.watch.events import Event, Notice, iso

CALM = 10  # windows after which an episode is over
HOUR = np.timedelta64(3_600_000_000, "us")
_MORE = 2  # times as many sensors as were told are news
WAYS = ("alarm", "silent", "stuck", "range")  # of being wrong, as the events that begin them are called


class Notices:
    """What was told of the present episode, in windows of so many seconds; on: whether anybody is told.

    told: sensors that each way of being wrong concerned when it was told; empty if there is no episode. names: all
    sensors so far. begun, last: when it began, and when it was last told. calm_since: since when nothing is wrong.
    ended: when the episode before was over. again: whether this one is a repetition.
    """

    FIELDS = (
        Field("told", (), int, keyed=True),
        Field("names", ("names",), str, row=frozenset),
        *(Field(name, (), np.datetime64, optional=True) for name in ("begun", "last", "calm_since", "ended")),
        *(Field(name, (), bool) for name in ("again", "on")),
    )

    def __init__(self, seconds: float) -> None:
        self._calm = np.timedelta64(round(CALM * seconds * 1e6), "us")
        self.told: dict[str, int] = {}
        self.names: frozenset[str] = frozenset()
        self.begun: np.datetime64 | None = None
        self.last: np.datetime64 | None = None
        self.calm_since: np.datetime64 | None = None
        self.ended: np.datetime64 | None = None
        self.again = self.on = False

    def step(
        self, events: Sequence[Event], wrong: Mapping[str, Collection[str]], time: np.datetime64, clock: Clock
    ) -> list[Event]:
        """The events of a window, those that go out marked, and the end of the episode where it is over.

        wrong: the sensors that are wrong now, by the way.
        """
        if not self.on:
            return list(events)
        told = [replace(event, notice=self._notice(event.event, wrong, time)) for event in events]
        if any(wrong.values()):
            self.calm_since = None
        elif self.told:
            self.calm_since = time if self.calm_since is None else self.calm_since
            if time - self.calm_since >= (HOUR if self.again else self._calm):
                told += self.end(time, f"nothing is wrong since {clock.show(self.calm_since)}", clock)
        return told

    def end(self, time: np.datetime64, why: str, clock: Clock) -> list[Event]:
        """End the episode, if there is one."""
        if not self.told or self.begun is None:
            return []
        names = tuple(sorted(self.names))
        text = f"calm: {why}; alarm since {clock.show(self.begun)}: {listed(names)}"
        self.told, self.names, self.again, self.calm_since, self.ended = {}, frozenset(), False, None, time
        return [Event("calm", iso(clock, time), text, onset=iso(clock, self.begun), sensors=names, notice="over")]

    def _notice(self, kind: str, wrong: Mapping[str, Collection[str]], time: np.datetime64) -> Notice | None:
        sensors = wrong.get(kind, ())
        if not sensors:
            return None
        self.names |= frozenset(sensors)
        before = self.told.get(kind)
        notice: Notice = "alarm"
        if not self.told:
            self.again = self.ended is not None and bool(time - self.ended < HOUR)
            self.begun = time
            notice = "repeats" if self.again else "alarm"
        elif before is not None and len(sensors) <= _MORE * before:
            assert self.last is not None
            if time - self.last < HOUR:
                return None
            notice = "repeats"
        self.told[kind], self.last = len(sensors), time
        return notice
