"""What a channel is: it takes a message, or says whether it may have left all the same."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from eccaht.base.presentation.text import confident, listed

_CONTROL = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]+")
_HEADINGS = {"alarm": "ALARM", "over": "Over", "no-data": "NO DATA", "data-back": "Data back"}


class NotDelivered(Exception):
    """The message surely did not arrive: it is tried again later."""


class PerhapsDelivered(Exception):
    """The message was on its way when something broke: the sender does not know whether it arrived."""


@dataclass(frozen=True)
class Message:
    """An event of a plant that goes out; key: the same however often it is sent."""

    key: str
    plant: str
    number: int
    kind: str
    event: Mapping[str, Any]

    def document(self) -> dict[str, Any]:
        return {"key": self.key, "plant": self.plant, "number": self.number, "kind": self.kind, "event": self.event}

    @property
    def subject(self) -> str:
        """One line for people.

        >>> Message("k", "mill", 7, "alarm", {"named": ["LT-101", "TT-303"]}).subject
        'ALARM mill: LT-101, TT-303'
        """
        heading, named = _HEADINGS.get(self.kind, self.kind), listed(list(self.event.get("named") or ()))
        return one_line(f"{heading} {self.plant}: {named}" if named else f"{heading} {self.plant}")[:200]

    @property
    def body(self) -> str:
        """A few lines for people."""
        event = self.event
        lines = [one_line(str(event.get("text") or self.subject)), ""]
        facts = {"plant": self.plant, "time": event.get("time"), "onset": event.get("onset"), "event": self.number}
        confidence = event.get("confidence")
        if confidence is not None:
            facts["confidence"] = confident(float(confidence))
        lines += [f"{name}: {one_line(str(value))}" for name, value in facts.items() if value is not None]
        return "\n".join([*lines, ""])


class Channel(Protocol):
    """Where messages go.

    name: as in the settings. idempotent: whether the receiver knows a message that comes twice by its key.
    """

    @property
    def name(self) -> str:
        """As in the settings."""

    @property
    def idempotent(self) -> bool:
        """Whether sending a message twice is harmless."""

    async def send(self, message: Message) -> None:
        """Send a message; raises NotDelivered or PerhapsDelivered."""


def one_line(text: str) -> str:
    """A text without line breaks and control characters, which would end a header or a line of a mail.

    >>> one_line("mill\\r\\nBcc: x")
    'mill Bcc: x'
    """
    return _CONTROL.sub(" ", text)
