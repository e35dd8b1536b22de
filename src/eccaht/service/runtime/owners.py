"""Who watches which plant: of several services with one store, each plant has one, by a lease with a revision.

A step is stored only if the lease of its plant still has the service and the revision under which the step was made: a
service that was taken for dead changes nothing, however late it writes. A service lives as long as its beat, a number
that it raises every few seconds, changes on the others' monotonic clocks: no clock is compared with another.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from time import monotonic
from typing import NamedTuple

import sqlalchemy as sa

from eccaht.service.rows import Busy
from eccaht.service.store.schema import owners, plants, services
from eccaht.service.store.store import upsert

BEAT = 5.0  # seconds between two looks
DEAD = 30.0  # seconds without a beat after which others take a service's plants
NOBODY = ""  # in the place of a service


class Elsewhere(Busy):
    """The plant is not watched here; address: of the service that does, None if there is none at the moment."""

    def __init__(self, plant: str, service: str, address: str | None) -> None:
        where = f"by {service} at {address}" if address else "by no service at the moment"
        super().__init__(f"plant {plant} is watched {where}: try again, or there", BEAT)
        self.address = address


class Lease(NamedTuple):
    """service: NOBODY if none. steps: stored so far."""

    service: str
    revision: int
    steps: int


@dataclass
class OwnersLook:
    """What a look found: plants that came and went, that are more than a fair share, and that others have moved."""

    won: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    surplus: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)


class Owners:
    """The leases as this service sees them; used in the thread that writes.

    mine: the revisions of the plants that are watched here. pinned: those of them that stay here whatever the others
    have, because their rows come here.
    """

    def __init__(self, name: str, address: str) -> None:
        self.rename(name, address)
        self.mine: dict[str, int] = {}
        self.pinned: set[str] = set()
        self._leases: dict[str, Lease] = {}
        self._addresses: dict[str, str] = {}  # of the services that live
        self._beats: dict[str, tuple[int, float]] = {}  # of the others, and when they changed
        self._share = 1 << 30  # plants that are a fair share

    def rename(self, name: str, address: str) -> None:
        """Before the beginning: the port may be known late."""
        self.name, self.address = name, address

    def begin(self, connection: sa.Connection, *, alone: bool) -> None:
        """Announce this service: what an earlier program of its name had is free; alone: so is what any other had."""
        mine = sa.true() if alone else owners.c.service == self.name
        connection.execute(sa.update(owners).where(mine).values(service=NOBODY))
        if alone:
            connection.execute(sa.delete(services))
        upsert(connection, services, [{"name": self.name, "address": self.address, "beat": 0}])

    def end(self, connection: sa.Connection) -> None:
        """This service ends; its plants were released."""
        connection.execute(sa.delete(services).where(services.c.name == self.name))

    def look(self, connection: sa.Connection) -> OwnersLook:
        """Beat, see who lives, and take what nobody has, up to a fair share."""
        me, before = services.c.name == self.name, {plant: self._standing(plant) for plant in self._leases}
        if not connection.execute(sa.update(services).where(me).values(beat=services.c.beat + 1)).rowcount:
            upsert(connection, services, [{"name": self.name, "address": self.address, "beat": 0}])
        self._see_services(connection)
        known, found = list(connection.execute(sa.select(plants.c.name)).scalars()), OwnersLook()
        self._leases = self._read(connection, known)
        for plant in [plant for plant in self.mine if not self._is_mine(plant, self._leases.get(plant))]:
            self.forget(plant)
            found.lost.append(plant)
        self._share = math.ceil(len(known) / len(self._addresses))
        free = sorted(plant for plant in known if plant not in self.mine and self.address_of(plant) is None)
        for plant in free:
            if len(self.mine) < self._share and self.take(connection, plant):
                found.won.append(plant)
        loose = sorted(self.mine.keys() - self.pinned)
        found.surplus = loose[: max(len(self.mine) - self._share, 0)]
        others = [plant for plant in known if plant not in self.mine]
        found.moved = [plant for plant in others if before.get(plant) != self._standing(plant)]
        return found

    def take(self, connection: sa.Connection, plant: str, *, by_force: bool = False) -> bool:
        """Take a plant that nobody has; by_force: also from a service that lives, which notices with its next step."""
        lease = self._read(connection, [plant], lock=True).get(plant)
        if self._is_mine(plant, lease):
            return True
        if lease is not None and lease.service in self._addresses and not by_force:
            self._leases[plant] = lease
            return False
        revision, steps = (1, 0) if lease is None else (lease.revision + 1, lease.steps)
        row = {"plant": plant, "service": self.name, "revision": revision, "steps": steps}
        if lease is None:
            connection.execute(sa.insert(owners).values(**row))
        else:
            connection.execute(sa.update(owners).where(owners.c.plant == plant).values(**row))
        self.mine[plant], self._leases[plant] = revision, Lease(self.name, revision, steps)
        return True

    def claim(self, connection: sa.Connection, plant: str) -> None:
        """Make sure that a plant is watched here, by taking it if nobody has it and there is room."""
        if plant in self.mine:
            if not self.fence(connection, [plant]):
                return
            self.forget(plant)
        full = plant in self._leases and len(self.mine) >= self._share  # one that is new has no lease
        if full or not self.take(connection, plant):
            raise self.elsewhere(plant)

    def fence(self, connection: sa.Connection, stepped: Collection[str]) -> set[str]:
        """Lock the leases of plants until the transaction ends; return those that are no longer held here."""
        found = self._read(connection, sorted(set(stepped)), lock=True)
        lost = {plant for plant in stepped if not self._is_mine(plant, found.get(plant))}
        if kept := set(stepped) - lost:
            counted = sa.update(owners).where(owners.c.plant.in_(kept)).values(steps=owners.c.steps + 1)
            connection.execute(counted)
        self._leases |= found
        return lost

    def release(self, connection: sa.Connection, plant: str) -> None:
        """Let another service take a plant; its state was stored."""
        connection.execute(sa.update(owners).where(owners.c.plant == plant).values(service=NOBODY))
        self.forget(plant)
        self.look_again(plant)

    def look_again(self, plant: str) -> None:
        """What others did to a plant was not looked at yet."""
        self._leases.pop(plant, None)

    def forget(self, plant: str) -> None:
        self.mine.pop(plant, None)
        self.pinned.discard(plant)

    def service_of(self, plant: str) -> str | None:
        """The service that watches a plant, None if none lives that does."""
        if plant in self.mine:
            return self.name
        lease = self._leases.get(plant)
        return lease.service if lease is not None and lease.service in self._addresses else None

    def address_of(self, plant: str) -> str | None:
        service = self.service_of(plant)
        return None if service is None else self._addresses.get(service)

    def elsewhere(self, plant: str) -> Elsewhere:
        """The error of what is asked of a plant that is not watched here."""
        service = self.service_of(plant)
        address = None if service in (None, self.name) else self.address_of(plant)
        return Elsewhere(plant, service or NOBODY, address)

    def _standing(self, plant: str) -> tuple[Lease | None, str | None]:
        return self._leases.get(plant), self.service_of(plant)

    def _is_mine(self, plant: str, lease: Lease | None) -> bool:
        return lease is not None and lease.service == self.name and self.mine.get(plant) == lease.revision

    def _see_services(self, connection: sa.Connection) -> None:
        moment, self._addresses = monotonic(), {self.name: self.address}
        for row in connection.execute(sa.select(services)).all():
            beat, changed = self._beats.get(row.name, (None, moment))
            if beat != row.beat:
                self._beats[row.name] = (row.beat, changed := moment)
            if moment - changed < DEAD:
                self._addresses.setdefault(row.name, row.address)
            elif row.name != self.name:
                connection.execute(sa.delete(services).where(services.c.name == row.name, services.c.beat == row.beat))

    def _read(self, connection: sa.Connection, names: list[str], *, lock: bool = False) -> dict[str, Lease]:
        asked = sa.select(owners).where(owners.c.plant.in_(names)).order_by(owners.c.plant)
        rows = connection.execute(asked.with_for_update() if lock else asked).all()
        return {row.plant: Lease(row.service, row.revision, row.steps) for row in rows}
