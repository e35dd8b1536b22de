"""How a policy looks and what it is called, the same in every figure.

Colours are those of Okabe & Ito and a few that stay apart from them with every common kind of colour vision. A second
sign never fails: no two policies share both dash and marker, so that a figure can be read without colours too.
"""

from collections.abc import Iterable
from itertools import product
from typing import Any, NamedTuple
from zlib import crc32

from eccaht.base.presentation.style import PALETTE

_DASHES, _MARKERS = ("-", "--", "-.", ":"), "osDvPXd*ph<>"  # a triangle that points up is a lower bound
_LARGER = {"*": 1.6, "X": 1.2, "P": 1.2}  # marks that would look small beside a disc
_OWN_COLOURS = ("olive", "brown", "indigo")  # of policies that users bring along: no figure of the paper has them


class PolicyLook(NamedTuple):
    """Colour, dash and marker of a policy, and what the paper calls it if that is another name."""

    hue: str
    dash: str
    marker: str
    paper: str = ""

    @property
    def colour(self) -> str:
        return PALETTE[self.hue]

    @property
    def form(self) -> tuple[str, str]:
        """What is left of it without colours."""
        return self.dash, self.marker

    @property
    def line(self) -> dict[str, Any]:
        return {"color": self.colour, "linestyle": self.dash}

    def mark(self, size: float) -> dict[str, Any]:
        return {"marker": self.marker, "markersize": size * _LARGER.get(self.marker, 1.0)}


_KNOWN = {
    "ecc-aht": PolicyLook("blue", "-", "o"),
    "cost-free": PolicyLook("purple", "--", "D"),
    "simple-difference": PolicyLook("wine", "--", "s", "No-QP"),
    "mean-difference": PolicyLook("wine", ":", "d", "ECC-AHT-SimpleDiff"),
    "diagonal": PolicyLook("black", "-.", "v", "No-Correlation"),
    "robust": PolicyLook("sky", ":", "p"),
    "random-sparse": PolicyLook("orange", "-", "X", "RSP"),
    "round-robin": PolicyLook("vermillion", "-", "v", "RR"),
    "restricted-tree": PolicyLook("purple", "-.", "P", "Tree-Restricted"),
    "restricted-coordinates": PolicyLook("indigo", "-", "<", "ECC-AHT-Restricted"),
    "ttts-challenger": PolicyLook("purple", "-", "D"),
    "base-arm-combgape": PolicyLook("sky", "--", "<"),
    "combgape": PolicyLook("black", "-", "s"),
    "ttts": PolicyLook("wine", "-.", ">"),
    "t3c": PolicyLook("indigo", ":", "h"),
    "hds": PolicyLook("vermillion", "--", "h"),
    "joint": PolicyLook("green", "-", "*"),
    "joint-pair": PolicyLook("indigo", "--", "*"),
    "exact": PolicyLook("black", ":", "*"),
    "ecc-aht-verified": PolicyLook("sky", "-", "p"),
    "two-stage": PolicyLook("orange", "--", "d"),
    "oracle-design": PolicyLook("brown", "--", "P"),
    "chernoff": PolicyLook("brown", ":", "v"),
    "controlled-sensing": PolicyLook("wine", ":", "P"),
    "extrinsic-jensen-shannon": PolicyLook("vermillion", ":", "X"),
    "track-and-stop": PolicyLook("vermillion", "-.", "D"),
    "frank-wolfe": PolicyLook("purple", ":", "s"),
    "rage": PolicyLook("wine", "-", "P"),
    "od-linbai": PolicyLook("purple", "-.", "o"),
    "lingame": PolicyLook("indigo", "-.", "X"),
    "lingape": PolicyLook("black", "--", "o"),
}
_TAKEN = {look.form for look in _KNOWN.values()}
_FREE = [form for form in product(_DASHES, _MARKERS) if form not in _TAKEN]
_OWN = [PolicyLook(_OWN_COLOURS[k % len(_OWN_COLOURS)], *form) for k, form in enumerate(_FREE)]


def looks(names: Iterable[str]) -> dict[str, PolicyLook]:
    """The look of each policy of a figure, no two alike.

    A policy of ours has always the same. One of a user's own has that of its name, or the next one whose colour the
    figure does not have yet.
    """
    wanted = list(dict.fromkeys(names))
    found = {name: _KNOWN[name] for name in wanted if name in _KNOWN}
    for name in sorted({*wanted} - found.keys()):
        first = crc32(name.encode()) % len(_OWN)
        order = [*_OWN[first:], *_OWN[:first]]
        free = [look for look in order if look not in found.values()] or order
        hues = {look.hue for look in found.values()}
        found[name] = next((look for look in free if look.hue not in hues), free[0])
    return {name: found[name] for name in wanted}


def shown_name(name: str) -> str:
    """Our name, and the paper's beside it where it differs in more than its capital letters.

    >>> shown_name("simple-difference"), shown_name("ecc-aht"), shown_name("my-own")
    ('simple-difference (No-QP)', 'ecc-aht', 'my-own')
    """
    paper = _KNOWN[name].paper if name in _KNOWN else ""
    return f"{name} ({paper})" if paper else name
