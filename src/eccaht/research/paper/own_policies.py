"""Results of the user's own policies beside those of the paper: they hold for the code that they were made with.

DIR/<id>/own.json       by policy a digest of the file of its module; only where such a policy was added
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

from eccaht.research.experiments.tables import save_json
from eccaht.research.paper import storage
from eccaht.research.paper.experiment import Experiment
from eccaht.streams.policies.catalogue import BUILT_IN, find_entry

OWN = "own.json"


def renew(directory: Path, experiment: Experiment, note: Callable[[str], object]) -> None:
    """Discard the cells of added policies whose module has changed since: a new algorithm under an old name."""
    own = [name for name in experiment.added if name not in BUILT_IN]
    if not own:
        return
    path = directory / experiment.id / OWN
    before, now = _recorded(path), {name: fingerprint(name) for name in own}
    for name in own:
        cells = [storage.cell_path(directory, experiment.id, cell) for cell in experiment.cells if cell[1] == name]
        if before.get(name) != now[name] and any(cell.exists() for cell in cells):
            note(f"the module of {name} has changed since its cells of {experiment.id} were made: they are made again")
            for cell in cells:
                cell.unlink(missing_ok=True)
    if before != before | now:
        save_json(before | now, path, sort_keys=True)


def fingerprint(name: str) -> str:
    """The digest of the file that defines a policy; the same for all that are in no file."""
    module = sys.modules.get(getattr(find_entry(name).compose, "__module__", ""))
    file = getattr(module, "__file__", None)
    content = Path(file).read_bytes() if isinstance(file, str) and Path(file).is_file() else b""
    return hashlib.sha256(content).hexdigest()


def _recorded(path: Path) -> dict[str, str]:
    try:
        found = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
