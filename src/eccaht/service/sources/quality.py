"""Quality of readings: OPC UA status codes, OPC Classic quality and words; what is not good is missing.

The values of some uncertain codes are no readings of their moment: the last usable value, a substitute, an initial
value. These are missing whatever the settings say.
"""

from __future__ import annotations

from typing import Any, Literal

Codes = Literal["opc-ua", "opc-classic"]
Severity = Literal["good", "uncertain", "bad"]

_NOT_OF_NOW = frozenset({0x408F, 0x4090, 0x4091, 0x4092})  # upper half: last usable (2), substitute, initial value
_LAST_USABLE = 0x44  # OPC Classic: uncertain, last usable value
_WORDS: dict[str, Severity] = {"good": "good", "uncertain": "uncertain", "bad": "bad"}


def severity_of_status(code: int) -> Severity:
    """The severity of an OPC UA status code, by its two highest bits; the reserved fourth counts as bad.

    >>> severity_of_status(0), severity_of_status(0x40940000), severity_of_status(0x80050000)
    ('good', 'uncertain', 'bad')
    >>> severity_of_status(0x40900000)  # UncertainLastUsableValue
    'bad'
    """
    if not 0 <= code < 1 << 32:
        raise ValueError(f"{_short(code)} is no OPC UA status code")
    if code >> 16 in _NOT_OF_NOW:
        return "bad"
    return ("good", "uncertain", "bad", "bad")[code >> 30]


def severity_of_classic(code: int) -> Severity:
    """The severity of an OPC Classic quality, by bits 7 and 6 of its low byte.

    >>> severity_of_classic(192), severity_of_classic(80), severity_of_classic(68), severity_of_classic(0)
    ('good', 'uncertain', 'bad', 'bad')
    """
    if not 0 <= code < 1 << 16:
        raise ValueError(f"{_short(code)} is no OPC Classic quality")
    if code & 0xFC == _LAST_USABLE:
        return "bad"
    return ("bad", "uncertain", "bad", "good")[code >> 6 & 3]


def severity(quality: Any, codes: Codes | None) -> Severity:
    """The severity of a quality as payloads have it: true, a word such as GoodClamped, or a number of a known kind.

    0 is good in OPC UA and bad in OPC Classic, so numbers need the setting that says which.

    >>> severity(True, None), severity("Bad_NoCommunication", None), severity(192, "opc-classic")
    ('good', 'bad', 'good')
    """
    if isinstance(quality, bool):
        return "good" if quality else "bad"
    if isinstance(quality, int):
        if codes is None:
            raise ValueError("the quality is a number: set quality_codes to opc-ua or opc-classic")
        return severity_of_status(quality) if codes == "opc-ua" else severity_of_classic(quality)
    if isinstance(quality, str):
        word = quality.strip().lower().replace("_", "")
        if word.startswith(("uncertainlastusable", "uncertainnocomm", "uncertainsubstitute", "uncertaininitial")):
            return "bad"
        for start, meaning in _WORDS.items():
            if word.startswith(start):
                return meaning
    raise ValueError(f"the quality {_short(quality)} is neither good, uncertain, bad, true, false nor a code")


def _short(value: Any) -> str:
    if isinstance(value, int) and value.bit_length() > 64:
        return "a huge number"
    return repr(value)[:40]
