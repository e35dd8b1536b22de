"""The outputs that README and pages for engineers show, made again by their commands: `python docs/outputs.py`."""

import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

DOCS = Path(__file__).parent
PAGES = [
    DOCS / "tutorials" / "wrong-sensors.md",
    DOCS / "how-to" / "watch.md",
]
README = DOCS.parent / "README.md"
PARAGRAPH = re.compile(r"^\S.*\n(?: +.*\n)*", re.MULTILINE)  # a line and what is indented under it
SHOWN = re.compile(r"```sh\n(?P<commands>.*?)```(?P<between>\n*)(?P<text>```text\n(?P<output>.*?)```)?", re.DOTALL)
CUT = "..."  # a block that begins with it shows the end of the output, one that ends with it the beginning


def printed(commands: str, directory: Path) -> str:
    """What the last of these commands prints, without the names of files that were saved."""
    output = ""
    for line in commands.splitlines():
        name, *arguments = shlex.split(line, comments=True)
        if name == "eccaht":
            print(line, file=sys.stderr)
            done = subprocess.run(
                [sys.executable, "-m", "eccaht", *arguments], cwd=directory, check=True, capture_output=True, text=True
            )
            output = done.stdout
    return "".join(line for line in output.splitlines(keepends=True) if not line.startswith("Saved "))


def shortened(output: str, shown: str) -> str:
    """As much of the output as the page shows: all of it, from the line on that begins as the page's second line, or
    as many lines from the beginning.
    """
    first, *rest = shown.splitlines()
    lines = output.splitlines(keepends=True)
    if rest and rest[-1] == CUT:
        return "".join([*lines[: len(rest)], f"{CUT}\n"])
    if first != CUT:
        return output
    begins = rest[0].split()[1:2]  # numbers may change, words do not
    start = next(number for number, line in enumerate(lines) if line.split()[1:2] == begins)
    return "".join([f"{CUT}\n", *lines[start:]])


def quoted(output: str, shown: str) -> str:
    """The paragraphs that README shows, as they are printed: those that begin with the same word."""
    known = {text.split()[0]: text for text in reversed(PARAGRAPH.findall(output))}
    return "".join(known.get(text.split()[0], text) for text in PARAGRAPH.findall(shown))


def rewrite(page: Path, cut: Callable[[str, str], str], directory: Path) -> None:
    """Put the outputs of its commands, cut to what it shows, into a page."""

    def again(found: re.Match[str]) -> str:
        output = printed(found["commands"], directory)
        if found["text"] is None:
            return found[0]
        return f"```sh\n{found['commands']}```{found['between']}```text\n{cut(output, found['output'])}```"

    page.write_text(SHOWN.sub(again, page.read_text(encoding="utf-8")), encoding="utf-8")


def main() -> None:
    """Write the pages again."""
    with tempfile.TemporaryDirectory() as home:
        for page in PAGES:
            rewrite(page, shortened, Path(home))
    with tempfile.TemporaryDirectory() as home:
        rewrite(README, quoted, Path(home))


if __name__ == "__main__":
    main()
