"""Lays out our docstrings for the site: examples as code, described arguments as lists."""

import re
from typing import Any

import griffe

_ARGUMENT = re.compile(r"^((?:[a-z_]+)(?:, [a-z_]+)*): (?=\S)")


def laid_out(text: str) -> str:
    """Return Markdown in which doctests are fenced and lines like `name: what it is` are items of a list."""
    lines: list[str] = []
    example = item = False
    for line in text.splitlines():
        if line.startswith(">>>") and not example:
            lines += ["", "```pycon"]
            example, item = True, False
        elif example and not line.strip():
            lines.append("```")
            example = False
        if not example and (found := _ARGUMENT.match(line)):
            lines += [] if item else [""]
            line, item = f"- **{found[1]}**: {line[found.end() :]}", True
        elif item and line.strip():
            line = "  " + line.strip()
        else:
            item = item and example
        lines.append(line)
    return "\n".join([*lines, "```"] if example else lines)


class Layout(griffe.Extension):
    """Applied to every docstring."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of an object."""
        if obj.docstring is not None:
            obj.docstring.value = laid_out(obj.docstring.value)
