"""What was counted on a history, as values of JSON in a model: whatever counted it knows what they mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Counted:
    """What was counted, a document."""

    counted: dict[str, Any]

    def header(self) -> dict[str, Any]:
        return self.counted

    @staticmethod
    def build(header: Any, what: str) -> Counted | None:
        """From an untrusted file, None where it has none; whatever counted it checks more."""
        if header is None:
            return None
        if not isinstance(header, dict):
            raise ValueError(f"its {what} are damaged")
        return Counted(header)
