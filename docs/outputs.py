"""The outputs that docs/engineers.md and README show, made again by its own commands: `python docs/outputs.py`."""

import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).parent / "engineers.md"
README = PAGE.parents[1] / "README.md"
QUOTED = re.compile(r"(?<=```text\n).*?(?=```)", re.DOTALL)
PARAGRAPH = re.compile(r"^\S.*\n(?: +.*\n)*", re.MULTILINE)  # a line and what is indented under it
SHOWN = re.compile(r"```sh\n(?P<commands>.*?)```(?P<between>\n*)(?P<text>```text\n(?P<output>.*?)```)?", re.DOTALL)
CUT = "..."  # a block that begins with it shows the end of the output


def printed(commands: str, directory: Path) -> str:
    """What the last of these commands prints, without the names of files that were saved."""
    output = ""
    for line in commands.splitlines():
        name, *arguments = shlex.split(line)
        if name == "eccaht":
            print(line, file=sys.stderr)
            done = subprocess.run(
                [sys.executable, "-m", "eccaht", *arguments], cwd=directory, check=True, capture_output=True, text=True
            )
            output = done.stdout
    return "".join(line for line in output.splitlines(keepends=True) if not line.startswith("Saved "))


def shortened(output: str, shown: str) -> str:
    """As much of the output as the page shows: all of it, or from the line on that begins as the page's second line."""
    first, *rest = shown.splitlines()
    if first != CUT:
        return output
    lines = output.splitlines(keepends=True)
    begins = rest[0].split()[1:2]  # numbers may change, words do not
    start = next(number for number, line in enumerate(lines) if line.split()[1:2] == begins)
    return "".join([f"{CUT}\n", *lines[start:]])


def quoted(page: str, shown: str) -> str:
    """The paragraphs that README shows, as the page has them: those that begin with the same word."""
    known = {text.split()[0]: text for text in reversed(PARAGRAPH.findall(page))}
    return "".join(known.get(text.split()[0], text) for text in PARAGRAPH.findall(shown))


def main() -> None:
    """Write the pages again."""
    page = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as home:

        def again(found: re.Match[str]) -> str:
            output = printed(found["commands"], Path(home))
            if found["text"] is None:
                return found[0]
            text = shortened(output, found["output"])
            return f"```sh\n{found['commands']}```{found['between']}```text\n{text}```"

        page = SHOWN.sub(again, page)
    PAGE.write_text(page, encoding="utf-8")
    identified = page.partition("## 3. Identify")[2]
    text = README.read_text(encoding="utf-8")
    README.write_text(QUOTED.sub(lambda found: quoted(identified, found[0]), text), encoding="utf-8")


if __name__ == "__main__":
    main()
