"""The pictures of docs but those of the page, made by the commands that users type: `make picture`."""

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image  # comes with matplotlib

IMAGES = Path(__file__).parent / "images"
EXCLUDE = ("--exclude", "P-101 mode")
QUESTION = ("--start", "2024-03-07T08:00", "--anomalies", "3", "--shift", "1")


def eccaht(*arguments: str, directory: Path) -> None:
    """Run a command there."""
    command = [sys.executable, "-m", "eccaht", *arguments]
    subprocess.run(command, cwd=directory, check=True, stdout=subprocess.DEVNULL)


def shrink(source: Path, name: str, width: int, colours: int = 128) -> None:
    """Keep a picture at the width of a page, in few colours: a tenth of the bytes of one for print."""
    with Image.open(source) as picture:
        size = (width, round(picture.height * width / picture.width))
        wide = picture.convert("RGB").resize(size, Image.Resampling.LANCZOS)
        small = wide.quantize(colours, dither=Image.Dither.NONE)
    IMAGES.mkdir(exist_ok=True)
    small.save(IMAGES / name, optimize=True)
    print(f"{IMAGES / name}: {size[0]} x {size[1]}, {(IMAGES / name).stat().st_size / 1000:.0f} kB")


def main() -> None:
    """Draw a search seen from inside, and drills, the incident and the evidence of the example plant."""
    with tempfile.TemporaryDirectory() as home:
        here = Path(home)
        eccaht("demo", "--json", "--out", "demo", directory=here)
        shrink(here / "demo" / "fig1.png", "search.png", 1100)
        eccaht("example", "--out", ".", directory=here)
        eccaht("calibrate", "history.csv", *EXCLUDE, "--out", "plant.model", directory=here)
        eccaht("drill", "plant.model", "--plot", "drill.png", directory=here)
        shrink(here / "drill.png", "drill.png", 1000)
        data = ("--model", "plant.model", "--data", "incident.csv")
        eccaht("identify", *data, "--plot", "incident.png", directory=here)
        shrink(here / "incident.png", "incident.png", 900, colours=64)
        eccaht("identify", *data, *QUESTION, "--plot", "evidence.png", directory=here)
        shrink(here / "evidence.png", "evidence.png", 1000)


if __name__ == "__main__":
    main()
