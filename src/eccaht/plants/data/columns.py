"""Columns of numbers and of texts: which of them a file or a frame holds, and texts that are numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from eccaht.plants.data.cleaning import kind_of
from eccaht.plants.data.layout import MISSING, Layout, is_number

if TYPE_CHECKING:
    import polars as pl

WORDS = [word for word in MISSING if word.lower() not in ("", "nan")]  # for a missing reading
_WORD = "\0word"  # which no column can be called
TIME = "\0time"  # what the frame calls the time columns: no file can have such a name


def typed_columns(layout: Layout, places: Mapping[str, int], unchecked: Collection[str]) -> pl.DataFrame:
    """Numbers and truth values as floats, categories as text; times stay; anything else is refused by name."""
    import polars as pl

    table = layout.scan()
    schema = table.collect_schema()
    columns, kinds = list(schema), list(schema.values())
    wanted = []
    for name, place in places.items():
        column, kind = pl.col(columns[place]), kinds[place]
        if name.startswith(TIME) and (kind.is_temporal() or kind.is_numeric()):
            wanted.append(column.alias(name))
        elif kind.is_numeric() or kind in (pl.Boolean, pl.Null):
            wanted.append(column.cast(pl.Float64).alias(name))
        elif kind in (pl.String, pl.Categorical, pl.Enum):
            wanted.append(text_of(column.cast(pl.String)).alias(name))
        elif name in unchecked:
            wanted.append(pl.lit(None, dtype=pl.Float64).alias(name))
        else:
            raise ValueError(f"column {name!r} of {layout.path} is of type {kind}, no number or text: exclude it")
    return _with_numbers(table.select(wanted).collect(engine="streaming"), layout.decimal_comma)


def _with_numbers(frame: pl.DataFrame, decimal_comma: bool) -> pl.DataFrame:
    import polars as pl

    changed = []
    for name, kind in frame.schema.items():
        if kind == pl.String and not name.startswith(TIME):
            numbers = numbers_of(frame[name], decimal_comma)
            if numbers.null_count() == frame[name].null_count():
                changed.append(numbers.alias(name))
    return frame.with_columns(changed)


def text_of(column: pl.Expr) -> pl.Expr:
    """Text without blanks around it, null if missing."""
    import polars as pl

    stripped = column.str.strip_chars()
    return pl.when(stripped.is_in(list(MISSING))).then(None).otherwise(stripped)


def numbers_of(texts: pl.Series, decimal_comma: bool) -> pl.Series:
    """A column of texts as numbers, null where they are none."""
    import polars as pl

    alone = texts.to_frame("texts")  # pl.col takes a name such as * for several
    return alone.select(number_of(pl.col("texts"), decimal_comma)).to_series()


def number_of(column: pl.Expr, decimal_comma: bool) -> pl.Expr:
    """Text as a number, null if it is none."""
    import polars as pl

    text = text_of(column)
    if decimal_comma:
        point = text.str.contains(".", literal=True)  # such a text is as wrong here as a comma is elsewhere
        text = pl.when(~point).then(text.str.replace(",", ".", literal=True))
    return text.cast(pl.Float64, strict=False)


def words_for_missing(layout: Layout, places: Mapping[str, int]) -> tuple[str, ...]:
    """The words of these columns that were read as missing readings, and how often: a note, if there are any."""
    import polars as pl

    table = layout.scan()
    kinds = table.collect_schema().values()
    texts = {k for k, kind in enumerate(kinds) if kind in (pl.String, pl.Categorical, pl.Enum)}
    wanted = sorted({place for name, place in places.items() if not name.startswith(TIME)} & texts)
    if not wanted:
        return ()
    cells = table.select(pl.nth(wanted).cast(pl.String).str.strip_chars()).unpivot(value_name=_WORD, variable_name=TIME)
    counts = cells.filter(pl.col(_WORD).is_in(WORDS)).group_by(_WORD).len().sort("len", _WORD, descending=True)
    shown = [f"{count} {word!r}" for word, count in counts.collect(engine="streaming").iter_rows()]
    return (f"cells of {layout.path} that are missing readings: {', '.join(shown)}",) if shown else ()


def read_leniently(layout: Layout, places: Mapping[str, int], numeric: set[int], flag: pl.Expr) -> pl.DataFrame:
    """Read again: columns that hold any text that is no number stay text, the others become numbers."""
    import polars as pl

    lines, comma = layout.scan(), layout.decimal_comma
    columns = {k: pl.col(str(k)) for k in places.values()}
    odd = [
        (text_of(columns[k]).is_not_null() & number_of(columns[k], comma).is_null()).any().alias(str(k))
        for k in sorted(numeric)
    ]
    answers = lines.select(odd).collect(engine="streaming").row(0, named=True)
    numbers = {k for k in numeric if not answers[str(k)]}
    wanted = [
        (number_of(columns[k], comma) if k in numbers else text_of(columns[k])).alias(name)
        for name, k in places.items()
    ]
    return lines.select([*wanted, flag]).collect(engine="streaming")


def joined_columns(layouts: Sequence[Layout], parts: list[pl.DataFrame]) -> pl.DataFrame:
    """Concatenate; a column that is text in one file, but empty or a few whole numbers in another, is text."""
    import polars as pl

    for name in parts[0].columns:
        texts = [k for k, part in enumerate(parts) if part.schema[name] == pl.String]
        for k, part in enumerate(parts):
            if not texts or k in texts:
                continue
            if kind_of(part[name].to_numpy()) == "continuous":
                raise ValueError(
                    f"column {name!r} holds numbers in {layouts[k].path} but texts in {layouts[texts[0]].path}: "
                    "exclude it, or make it one of both"
                )
            parts[k] = part.with_columns(pl.col(name).cast(pl.Int64).cast(pl.String))
    return pl.concat([part.select(parts[0].columns) for part in parts])


def unknown_texts(column: pl.Series, levels: Sequence[str]) -> pl.Series:
    """Which values are none of these texts; numbers are compared with the texts that are numbers."""
    import polars as pl

    if column.dtype == pl.String:
        return column.is_not_null() & ~column.is_in(list(levels))
    known = [float(level) for level in levels if is_number(level)]
    return column.is_not_null() & ~column.is_nan() & ~column.is_in(known)
