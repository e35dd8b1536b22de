"""What was counted on a history, as plain numbers in a model: what they mean is known to the room that counted them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from eccaht.arrays import Array, frozen


@dataclass(frozen=True, eq=False)
class Counted:
    """What was counted (a document) and what was measured (arrays)."""

    counted: dict[str, Any]
    measured: dict[str, Array]

    def header(self) -> dict[str, Any]:
        """What was counted."""
        return self.counted

    def arrays(self) -> dict[str, Array]:
        """What was measured."""
        return self.measured

    @staticmethod
    def build(header: Any, arrays: dict[str, Array], what: str) -> Counted | None:
        """From a file, which a stranger may have written, None where it has none; the room that counted checks more."""
        if header is None and not arrays:
            return None
        if not isinstance(header, dict) or not arrays or not all(np.isfinite(array).all() for array in arrays.values()):
            raise ValueError(f"its {what} are damaged")
        return Counted(header, {name: frozen(np.array(array)) for name, array in arrays.items()})
