"""What drills left in a model, as plain numbers: what they mean is known to `eccaht.incident`, which counted them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from eccaht.arrays import Array, frozen


@dataclass(frozen=True, eq=False)
class Drilled:
    """What was counted (a document) and what was measured (arrays) on faults in the history."""

    counted: dict[str, Any]
    measured: dict[str, Array]

    def header(self) -> dict[str, Any]:
        """What was counted."""
        return self.counted

    def arrays(self) -> dict[str, Array]:
        """What was measured."""
        return self.measured

    @staticmethod
    def build(header: Any, arrays: dict[str, Array]) -> Drilled:
        """From a file, which a stranger may have written; `eccaht.incident.drill.kept` checks the rest."""
        if not isinstance(header, dict) or not arrays or not all(np.isfinite(array).all() for array in arrays.values()):
            raise ValueError("its drills are damaged")
        return Drilled(header, {name: frozen(np.array(array)) for name, array in arrays.items()})
