"""The program that fits and drills a new model, apart from the service, so that rows never wait for it.

    python -m eccaht.service.runtime.retrainer FOLDER

FOLDER holds `old.model`, `windows.npz` (starts, values, rows) and `asked.json` (every, runs). It prints its progress as
lines of JSON, and writes `new.model` and `found.json` there.
"""

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from eccaht.base.presentation.text import lasting
from eccaht.plants import Model, Windows, parse_model
from eccaht.plants.incident.comparison import Comparison, compare_models, counted
from eccaht.plants.incident.drill import keeping
from eccaht.plants.retrain import recalibrate
from eccaht.service.runtime.views import stamp

_NICE = 10
_FITTED = 0.1  # share of the work before the drills, about


def retrain(folder: Path) -> None:
    """Do what is asked for in a folder."""
    old = parse_model((folder / "old.model").read_bytes(), "the model of the plant")
    asked = json.loads((folder / "asked.json").read_text(encoding="utf-8"))
    with np.load(folder / "windows.npz") as stored:
        starts, values, rows = stored["starts"], stored["values"], stored["rows"]
    counts = np.broadcast_to(rows[:, None].astype(np.float64), values.shape)
    windows = Windows(
        starts.astype("datetime64[us]"), values, old.names, old.seconds, rows=counts, clock=old.clock, model=old
    )
    _report("fitting", 0.0)
    new, filled = recalibrate(old, windows)
    done = 0

    def progress(count: int) -> None:
        nonlocal done
        done += count
        _report("drilling", _FITTED + (1.0 - _FITTED) * done / (2 * asked["runs"]))

    _report("drilling", _FITTED)
    compared = compare_models(
        old.of(new.names), new, filled, every=asked["every"], runs=asked["runs"], progress=progress
    )
    (folder / "new.model").write_bytes(keeping(new, compared.new).to_bytes())
    (folder / "found.json").write_text(json.dumps(_found(old, new, compared)), encoding="utf-8")


def _found(old: Model, new: Model, compared: Comparison) -> dict[str, Any]:
    left_out = [{"sensor": column.name, "reason": column.reason} for column in new.columns if column.name in old.names]
    return {
        "better": compared.better,
        "old": _side(old) | counted(compared.old),
        "new": _side(new) | counted(compared.new),
        "left_out": [row for row in left_out if row["reason"]],
        "seen": bool(old.first <= new.last and new.first <= old.last),
    }


def _side(model: Model) -> dict[str, Any]:
    every = model.usual_rate
    length = f"{every:.0f} windows" if model.clock.counted else lasting(every * model.seconds)
    return {
        "default_rate": f"one in {length}",
        "sensors": len(model.names),
        "history": model.n_windows,
        "first": stamp(model.clock, model.first),
        "last": stamp(model.clock, model.last),
    }


def _report(stage: str, share: float) -> None:
    print(json.dumps({"stage": stage, "share": round(min(share, 1.0), 3)}), flush=True)


def main() -> None:
    """Run the program; what the period lacks is one line on stderr."""
    with suppress(OSError):
        os.nice(_NICE)
    try:
        retrain(Path(sys.argv[1]))
    except ValueError as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
