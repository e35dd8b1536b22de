"""The common style, under the name that experiments use."""

from eccaht.presentation.style import (
    COLUMN_WIDTH,
    NEUTRAL,
    PALETTE,
    STYLE,
    TEXT_WIDTH,
    figure_style,
    save_figure,
)

__all__ = ["COLUMN_WIDTH", "NEUTRAL", "PALETTE", "STYLE", "TEXT_WIDTH", "figure_style", "save_figure"]
