"""Random secrets, how they are kept, and how they are compared.

A secret has 256 random bits: guessing finds none, however fast the hash is, so a salted SHA-256 keeps it as well
as a slow password hash would, and a service that checks hundreds of requests a second can afford it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import NamedTuple

_TOKEN = re.compile(r"eccaht_([1-9][0-9]{0,17})_([0-9a-f]{64})")
_NO_TOKEN = "sha256$" + "0" * 32 + "$" + "0" * 64  # what a secret is compared with when there is no such token
equal = hmac.compare_digest  # takes as long whether the first or the last character differs


class Text(NamedTuple):
    """The two parts of a token: its number in the store, and its secret."""

    id: int
    secret: str

    def __str__(self) -> str:
        return f"eccaht_{self.id}_{self.secret}"


def new() -> str:
    return secrets.token_hex(32)


def parse(text: str) -> Text | None:
    """The parts of a token, None if it is not written as one."""
    match = _TOKEN.fullmatch(text)
    return None if match is None else Text(int(match[1]), match[2])


def hashed(secret: str, salt: str | None = None) -> str:
    salt = secrets.token_hex(16) if salt is None else salt
    return f"sha256${salt}${hashlib.sha256(bytes.fromhex(salt) + secret.encode()).hexdigest()}"


def matches(secret: str, stored: str | None) -> bool:
    """Whether a secret is the one that was stored; takes as long if none was."""
    known = _NO_TOKEN if stored is None else stored
    kind, _, rest = known.partition("$")
    salt, _, _ = rest.partition("$")
    same = kind == "sha256" and equal(hashed(secret, salt), known)
    return same and stored is not None
