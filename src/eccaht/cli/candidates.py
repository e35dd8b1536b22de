"""How `eccaht calibrate` shows what it compared: one block for each part of normal operation."""

from __future__ import annotations

from eccaht.model.choice import PARTS, Choice, Scored

_JOINT = PARTS[-1]
_MARK = "*"  # beside what was chosen


def blocks(choice: Choice) -> list[list[tuple[str, ...]]]:
    """A table of cells for each part that was compared, with a mark beside the chosen candidate."""
    parts = {part: [row for row in choice.rows if row.part == part] for part in PARTS}
    lists = [_listed(part, rows) for part, rows in parts.items() if rows and part != _JOINT]
    return [*lists, _crossed(parts[_JOINT])] if parts[_JOINT] else lists


def _listed(part: str, rows: list[Scored]) -> list[tuple[str, ...]]:
    """One line for each candidate."""
    cells = [(row.candidate, _score(row), f"+- {row.error:.2g}" if row.error else "") for row in rows]
    return [(part, "score", "from the best"), *cells]


def _crossed(rows: list[Scored]) -> list[tuple[str, ...]]:
    """One line for each law, one column for each share of shrinkage."""
    table: dict[str, dict[str, str]] = {}
    for row in rows:
        law, _, share = row.candidate.partition(", shrink ")
        table.setdefault(law, {})[share] = _score(row)
    shares = list(dict.fromkeys(share for cells in table.values() for share in cells))
    lines = [(law, *(cells.get(share, "") for share in shares)) for law, cells in table.items()]
    return [("tails", *(f"shrink {share}" for share in shares)), *lines]


def _score(row: Scored) -> str:
    return f"{row.score:.3f}{_MARK if row.chosen else ''}"
