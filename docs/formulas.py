"""Formulas of the pages as MathML, which browsers show without a script: `$...$` in a line, `$$...$$` by itself.

pymdownx.arithmatex finds them, so that code keeps its dollar signs. Browsers set formulas well only in a font that is
made for it, which few machines have: the site takes one along, from the package ziamath.
"""

import html
import re
from importlib.resources import as_file, files
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

FONT = "formulas.ttf"  # as site.css has it
# what the converter leaves without the spacing of an operator, or with that of an infix one
_SPACED = (
    (re.compile(r"<m[io]>(log|exp|min|max|tr|var|Cov|diag)</m[io]>"), r'<mo lspace="0.15em" rspace="0.1em">\1</mo>'),
    (re.compile(r"<mi>(&#x0007E;|&#x0221D;|&#x02AB0;)</mi>"), r'<mo lspace="0.28em" rspace="0.28em">\1</mo>'),
    (re.compile(r"<mo>(&#x02016;|&#x0007C;)</mo>"), r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>'),
    # raised by their own shapes: as exponents of the usual size they could hardly be read
    (
        re.compile(r"<msup>(<mi>[^<]*</mi>)<mi>&#x02032;</mi></msup>"),
        r'<mrow>\1<mo lspace="0" rspace="0">&#x02032;</mo></mrow>',
    ),
    (re.compile(r"<mo>&#x0002A;</mo></msup>"), r'<mo mathsize="95%">&#x02217;</mo></msup>'),
)
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_files(found: Files, /, *, config: MkDocsConfig) -> Files:
    """Called by mkdocs with all files of the site."""
    with as_file(files("ziamath.fonts") / "STIXTwoMath-Regular.ttf") as font:
        found.append(File.generated(config, FONT, content=font.read_bytes()))
    return found


def on_page_content(content: str, /, *, page: Any, **_: object) -> str:
    """Called by mkdocs with the HTML of each page."""

    def shown(found: re.Match[str]) -> str:
        formula = html.unescape(found[2])
        shape = convert(formula, display="inline" if found[1] == "span" else "block")
        if "\\" in shape:  # a command that the converter does not know is left as it is
            raise PluginError(f"{page.file.src_path}: no such command in the formula {formula}")
        for pattern, operator in _SPACED:
            shape = pattern.sub(operator, shape)
        return shape

    return _FORMULA.sub(shown, content)
