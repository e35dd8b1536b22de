"""A page made of blocks, written as one self-contained HTML file or as Markdown."""

import base64
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path

_UNBROKEN = 30  # characters of a word that fit any screen


@dataclass(frozen=True)
class Link:
    """A place on the page (#id) or a file beside it."""

    text: str
    target: str


@dataclass(frozen=True)
class Code:
    """A command or a name."""

    text: str


@dataclass(frozen=True)
class Badge:
    """Words that are coloured too; `kind` chooses the colour."""

    text: str
    kind: str


Piece = str | Link | Code | Badge
Text = Piece | Sequence[Piece]


@dataclass(frozen=True)
class Heading:
    """A heading of level 2 or 3 that can be linked to."""

    text: str
    id: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """A paragraph; `label` is set in front of it."""

    text: Text
    label: str = ""


@dataclass(frozen=True)
class Items:
    """A list."""

    items: Sequence[Text]


@dataclass(frozen=True)
class Grid:
    """A table; the first column names the row."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Text]]
    kind: str = "numbers"


@dataclass(frozen=True)
class Picture:
    """A picture with its caption."""

    file: Path
    alt: str
    caption: Text


@dataclass(frozen=True)
class Drawing:
    """A picture as SVG, drawn for wide and for narrow screens, in the colours of the page."""

    wide: str
    narrow: str
    alt: str
    caption: Text


Block = Heading | Paragraph | Items | Grid | Picture | Drawing


def html(title: str, blocks: Iterable[Block], *, dark: bool = False, contents: bool = True) -> str:
    """One page with everything in it: style, pictures, no script and nothing to fetch.

    dark: also for screens set to dark, which drawings follow and pictures do not. contents: begin with a list of the
    headings.
    """
    blocks = list(blocks)
    sheets = ["page.css", *(["dark.css"] if dark else [])]
    style = "".join(files("eccaht.base.presentation").joinpath(name).read_text(encoding="utf-8") for name in sheets)
    start = _contents(blocks) if contents else ""
    body = "\n".join(_html_block(block, k) for k, block in enumerate(blocks))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<header><h1>{escape(title)}</h1></header>\n{start}\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def markdown(title: str, blocks: Iterable[Block], directory: Path) -> str:
    """The same content, with pictures linked relative to the directory."""
    return "\n\n".join([f"# {title}", *(_markdown_block(block, directory) for block in blocks)]) + "\n"


def _contents(blocks: Sequence[Block]) -> str:
    """Chapters, and under each its sections, folded away where there are many."""
    parts: list[tuple[Heading, list[Heading]]] = []
    for block in blocks:
        if isinstance(block, Heading) and block.level == 2:
            parts.append((block, []))
        elif isinstance(block, Heading):
            parts[-1][1].append(block)
    lines = []
    for chapter, sections in parts:
        inner = "".join(f"<li>{_anchor(section)}</li>" for section in sections)
        folded = f"<details><summary>{len(sections)} sections</summary><ul>{inner}</ul></details>" if inner else ""
        lines.append(f"<li>{_anchor(chapter)}{folded}</li>")
    return f'<nav aria-label="Contents"><h2>Contents</h2><ul>{"".join(lines)}</ul></nav>'


def _anchor(heading: Heading) -> str:
    return f'<a href="#{escape(heading.id)}">{escape(heading.text)}</a>'


def _html_block(block: Block, number: int) -> str:
    match block:
        case Heading():
            return f'<h{block.level} id="{escape(block.id)}">{escape(block.text)}</h{block.level}>'
        case Paragraph():
            label = f"<strong>{escape(block.label)}.</strong> " if block.label else ""
            return f"<p>{label}{_html_text(block.text)}</p>"
        case Items():
            return f"<ul>{''.join(f'<li>{_html_text(item)}</li>' for item in block.items)}</ul>"
        case Picture():
            data = base64.b64encode(block.file.read_bytes()).decode()
            image = f'<img src="data:image/png;base64,{data}" alt="{escape(block.alt)}">'
            return f"<figure>{image}<figcaption>{_html_text(block.caption)}</figcaption></figure>"
        case Drawing():
            sizes = (("wide", block.wide), ("narrow", block.narrow))
            shown = "".join(
                f'<div class="drawing {size}" role="img" aria-label="{escape(block.alt)}">{svg}</div>'
                for size, svg in sizes
            )
            return f"<figure>{shown}<figcaption>{_html_text(block.caption)}</figcaption></figure>"
        case Grid():
            head = "".join(f'<th scope="col">{escape(name)}</th>' for name in block.header)
            rows = "".join(f"<tr>{_html_row(row, block.header)}</tr>\n" for row in block.rows)
            caption = f'<caption id="table{number}"><span>{escape(block.caption)}</span></caption>'
            table = f"<table>{caption}<thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table>"
            about = f'role="region" aria-labelledby="table{number}" tabindex="0"'  # so that keys can scroll it
            return f'<div class="table {block.kind}" {about}>{table}</div>'


def _html_row(row: Sequence[Text], header: Sequence[str]) -> str:
    first, *others = (_html_text(cell) for cell in row)
    named = zip(others, header[1:], strict=True)
    return f'<th scope="row">{first}</th>' + "".join(
        f'<td data-label="{escape(name)}">{cell}</td>' for cell, name in named
    )


def _html_text(text: Text) -> str:
    return "".join(map(_html_piece, _pieces(text)))


def _html_piece(piece: Piece) -> str:
    match piece:
        case Link():
            return f'<a href="{escape(piece.target)}">{escape(piece.text)}</a>'
        case Code():
            return f"<code>{' '.join(map(_word, piece.text.split(' ')))}</code>"
        case Badge():
            return f'<span class="badge {escape(piece.kind)}">{escape(piece.text)}</span>'
    return escape(piece).replace("\n", "<br>")


def _word(word: str) -> str:
    """A word of code in one piece; a list may break after its commas, a long path anywhere.

    Browsers break lines after hyphens, also in `--start`.
    """
    parts = ((escape(part), len(part) <= _UNBROKEN) for part in word.split(","))
    return ",<wbr>".join(f"<span>{part}</span>" if short else part for part, short in parts)


def _pieces(text: Text) -> Sequence[Piece]:
    return [text] if isinstance(text, str | Link | Code | Badge) else text


def _markdown_block(block: Block, directory: Path) -> str:
    match block:
        case Heading():
            return f'<a id="{block.id}"></a>\n\n{"#" * block.level} {block.text}'
        case Paragraph():
            return (f"**{block.label}.** " if block.label else "") + _markdown_text(block.text)
        case Items():
            return "\n".join(f"- {_markdown_text(item)}" for item in block.items)
        case Picture():
            target = Path(os.path.relpath(block.file, directory)).as_posix()
            return f"![{block.alt}]({target})\n\n{_markdown_text(block.caption)}"
        case Drawing():
            data = base64.b64encode(block.wide.encode()).decode()
            return f"![{block.alt}](data:image/svg+xml;base64,{data})\n\n{_markdown_text(block.caption)}"
        case Grid():
            lines = [block.header, ["---"] * len(block.header)]
            lines += [[_markdown_text(cell).replace("|", "\\|") for cell in row] for row in block.rows]
            return "\n".join([f"{block.caption}:", "", *(f"| {' | '.join(line)} |" for line in lines)])


def _markdown_text(text: Text) -> str:
    return "".join(_markdown_piece(piece) for piece in _pieces(text))


def _markdown_piece(piece: Piece) -> str:
    match piece:
        case Link():
            return f"[{piece.text}]({piece.target})"
        case Code():
            return f"`{piece.text}`"
        case Badge():
            return f"**{piece.text}**"
    return piece.replace("*", "\\*").replace("<", "&lt;").replace("\n", "<br>")


def framed(page: str, height: int = 640) -> str:
    """A whole page as a part of another one, which keeps its own style: how a notebook shows it."""
    return f'<iframe srcdoc="{escape(page)}" style="width: 100%; height: {height}px; border: 0"></iframe>'
