"""What operators may report to a watch: a sensor is out of service, an alarm is known, this is normal from now on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eccaht.base.archive import check_keys
from eccaht.base.arrays import Array
from eccaht.base.naming import did_you_mean
from eccaht.base.stored import check_bounded
from eccaht.plants.watch.events import ActiveAlarm, microseconds, moment


class Operator:
    """Standing orders for K sensors; `apply` carries them out on each window before it is watched.

    shelved: sensors that bear no evidence, and until when. offsets: (K,), what is normal from now on less what was, in
    the units of the windows. acknowledged: when the alarm was raised that is known, None if none is.

    >>> operator = Operator(["a", "b"])
    >>> operator.shelve("b", np.datetime64("2024-05-01T10:00"))
    >>> operator.apply(np.array([1.0, 2.0]), np.datetime64("2024-05-01T09:59"))
    array([ 1., nan])
    >>> operator.apply(np.array([1.0, 2.0]), np.datetime64("2024-05-01T10:00"))
    array([1., 2.])
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.shelved: dict[str, np.datetime64] = {}
        self.offsets = np.zeros(len(self.names))
        self.acknowledged: np.datetime64 | None = None

    def shelve(self, name: str, until: np.datetime64) -> None:
        """Leave a sensor out until a time."""
        if name not in self.names:
            raise ValueError(f"there is no sensor {name!r} to shelve{did_you_mean(name, self.names)}")
        self.shelved[name] = until.astype("datetime64[us]")

    def unshelve(self, name: str) -> None:
        if name not in self.shelved:
            raise ValueError(f"the sensor {name!r} is not shelved")
        del self.shelved[name]

    def acknowledge(self, fault: ActiveAlarm | None) -> None:
        """Know of the alarm that goes on."""
        if fault is None:
            raise ValueError("there is no alarm to acknowledge")
        self.acknowledged = fault.raised

    def call_normal(self, fault: ActiveAlarm | None, sizes: Mapping[str, float]) -> None:
        """Take the present state as normal: from now on the sensors of the alarm are normal where they are.

        sizes: of its sensors, in the units of the windows. The alarm is over once the watcher finds the windows normal.
        """
        if fault is None:
            raise ValueError("there is no alarm whose state could become the new normal")
        for name in fault.named:
            self.offsets[self.names.index(name)] += sizes[name]

    def apply(self, x: Array, time: np.datetime64) -> Array:
        self.shelved = {name: until for name, until in self.shelved.items() if until > time}
        watched = x - self.offsets
        watched[[self.names.index(name) for name in self.shelved]] = np.nan
        return watched

    def header(self) -> dict[str, Any]:
        known = self.acknowledged
        return {
            "shelved": {name: microseconds(until) for name, until in self.shelved.items()},
            "offsets": self.offsets.tolist(),
            "acknowledged": None if known is None else microseconds(known),
        }

    @staticmethod
    def build(header: Any, names: Sequence[str]) -> Operator:
        check_keys(header, {"shelved", "offsets", "acknowledged"}, "orders")
        operator = Operator(names)
        offsets = np.array(header["offsets"], dtype=np.float64)
        if offsets.shape != operator.offsets.shape or not isinstance(header["shelved"], dict):
            raise ValueError("its orders are damaged")
        check_bounded(offsets, "orders")
        operator.offsets = offsets
        for name, until in header["shelved"].items():
            operator.shelve(name, moment(until))
        if header["acknowledged"] is not None:
            operator.acknowledged = moment(header["acknowledged"])
        return operator
