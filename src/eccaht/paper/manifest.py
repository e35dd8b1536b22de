"""Which bytes belong to which cell: cells that were damaged, edited or put in another's place are known by it.

DIR/<id>/manifest.json      by cell a digest of how it was made and of the bytes of its file
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eccaht.files import replacing

MANIFEST = "manifest.json"


def record(home: Path, spec: Mapping[str, Any], name: str, content: bytes) -> None:
    """Enter a cell; done before its file is written, so that no file appears that is not in the manifest."""
    entries = {**_read(home), name: _digest(spec, name, content)}
    with replacing(home / MANIFEST) as file:
        file.write(json.dumps(entries, indent=1, sort_keys=True).encode() + b"\n")


def belongs(home: Path, spec: Mapping[str, Any], name: str, content: bytes) -> bool:
    """Are these the bytes that were written for the cell, by these settings?"""
    return _read(home).get(name) == _digest(spec, name, content)


def _digest(spec: Mapping[str, Any], name: str, content: bytes) -> str:
    """Of settings and cell too: a file that is whole, but another's, does not pass with its entry copied along."""
    made = json.dumps({"spec": spec, "cell": name}, sort_keys=True, allow_nan=False)
    return hashlib.sha256(made.encode() + b"\0" + content).hexdigest()


def _read(home: Path) -> dict[str, Any]:
    """The entries; none where the manifest cannot be read, so that no cell passes."""
    try:
        entries = json.loads((home / MANIFEST).read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return entries if isinstance(entries, dict) else {}
