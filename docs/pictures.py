"""The pictures of docs but those of the page, made by the commands that users type: `make picture`."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image  # comes with matplotlib

from eccaht import load_model, pair_design
from eccaht.base.arrays import Array
from eccaht.base.presentation.style import figure_style
from eccaht.research.paper.fig1 import problem as fig1

IMAGES = Path(__file__).parent / "images"
EXCLUDE = ("--exclude", "P-101 mode")


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


def weights(model: Path, path: Path) -> None:
    """Draw two designed differences: for a sensor of the example plant, and of two streams in a search."""
    plant = load_model(model).problem(shift=1.0, n_anomalies=1, budget=10.0)
    names, S = plant.names or (), plant.covariance.dense()
    k, P = names.index("PT-402"), np.linalg.inv(S)
    search = fig1()
    pair = pair_design(search, 13, 7).weights
    with figure_style():
        figure = Figure(figsize=(8.0, 2.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        _weights(left, P[k] / P[k, k], S[k] / np.sqrt(S[k, k] * S.diagonal()), list(names))
        left.tick_params(axis="x", rotation=90)
        left.set_title("a plant: is PT-402 wrong?", loc="left")
        _weights(right, pair, search.covariance.column(13), [str(stream) for stream in range(search.size)])
        right.set_title("a search: stream 13 or stream 7?", loc="left")
        figure.savefig(path, dpi=200)


def _weights(ax: Axes, c: Array, correlation: Array, names: list[str]) -> None:
    """Bars of weights over the correlation with the suspect, as in figure 1 (f)."""
    ax.bar(names, correlation, width=1.0, color="#F0E442", alpha=0.5)
    ax.bar(names, c, width=0.55, color=np.where(c > 0, "#B2182B", "#2166AC"))
    ax.axhline(0.0, color="black", linewidth=0.6)
    ax.margins(x=0.01)


def main() -> None:
    """Draw a search seen from inside, and drills and the incident of the example plant."""
    with tempfile.TemporaryDirectory() as home:
        here = Path(home)
        eccaht("demo", "--json", "--out", "demo", directory=here)
        shrink(here / "demo" / "fig1.png", "search.png", 1100)
        eccaht("example", "--out", ".", directory=here)
        eccaht("calibrate", "history.csv", *EXCLUDE, "--out", "plant.model", directory=here)
        weights(here / "plant.model", here / "weights.png")
        shrink(here / "weights.png", "weights.png", 1100)
        eccaht("drill", "plant.model", "--plot", "drill.png", directory=here)
        shrink(here / "drill.png", "drill.png", 1000)
        data = ("--model", "plant.model", "--data", "incident.csv")
        eccaht("identify", *data, "--plot", "incident.png", directory=here)
        shrink(here / "incident.png", "incident.png", 900, colours=64)


if __name__ == "__main__":
    main()
