"""What is shown of secrets, and of texts that may hold them: whatever is not known to be harmless is hidden."""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from urllib.parse import quote, quote_plus, unquote, unquote_plus, urlsplit

import sqlalchemy as sa
from pydantic import SecretStr

HIDDEN = "***"
HOSTS = r"^[\w.:/,\[\] %-]+$"  # names and addresses, several with commas: nothing that could hold a password
_HOST = re.compile(r"([\w.-]*|\[[\w.:%]+\])(:\d{1,5})?")
_PATH = re.compile(r"(/[A-Za-z]:)?[\w./\\ ~+-]*")
_LONG = 6  # letters in a row that a text may share with a secret only by being about it
_SHORT = 3  # a secret of fewer letters is in every text


class SecretUrl(SecretStr):
    """A URL that may hold secrets; as text it is what `shown_url` shows of it."""

    shows_path = True

    def _display(self) -> str:
        return shown_url(self.get_secret_value(), path=self.shows_path)

    def secrets(self) -> Iterator[str]:
        """The parts that are hidden, those of userinfo and query also one by one."""
        text = self.get_secret_value()
        if shown_url(text, path=self.shows_path) == HIDDEN:
            yield text.partition("://")[2] or text
            return
        parts = urlsplit(text)
        userinfo = parts.netloc.rpartition("@")[0]
        yield from (userinfo, *userinfo.split(":", 1))
        yield from (field.partition("=")[2] or field for field in parts.query.split("&"))
        yield parts.fragment
        if not self.shows_path:
            yield parts.path.strip("/")


class SecretHook(SecretUrl):
    """A URL whose path is a secret too, as those of webhooks are."""

    shows_path = False


def shown_url(text: str, *, path: bool = True) -> str:
    """Scheme, host, port and path or database of a URL, with a mark where more was; all hidden where that is unclear.

    path: whether the path is harmless.

    >>> shown_url("postgresql://anna:x@host:5432/db?sslpassword=y"), shown_url("sqlite:///eccaht.db")
    ('postgresql://***@host:5432/db?***', 'sqlite:///eccaht.db')
    >>> shown_url("postgresql://anna:x/y@host/db"), shown_url("https://host/T0/B0/x", path=False)
    ('***', 'https://host/***')
    """
    try:
        parts = urlsplit(text)
    except ValueError:
        return HIDDEN
    rest = parts.path + parts.query + parts.fragment
    before, userinfo, host = parts.netloc.rpartition("@")
    # an @ further on is most likely one of a password that was cut at its / or ?
    if not parts.scheme or "://" not in text or "@" in rest or not _HOST.fullmatch(host):
        return HIDDEN
    if path and not _PATH.fullmatch(parts.path):
        return HIDDEN
    where = parts.path if path else f"/{HIDDEN}" if parts.path.strip("/") else parts.path
    more = f"?{HIDDEN}" if parts.query or parts.fragment else ""
    return f"{parts.scheme}://{HIDDEN + '@' if before or userinfo else ''}{host}{where}{more}"


def shown_hosts(text: object) -> str:
    """Names of hosts, with ports; hidden if there is anything else among them.

    >>> shown_hosts("a:9092, b.example:9092"), shown_hosts("anna:x@a:9092")
    ('a:9092, b.example:9092', '***')
    """
    return text if isinstance(text, str) and re.match(HOSTS, text) and "\n" not in text else HIDDEN


def scrubbed(text: str, secrets: Iterable[str]) -> str:
    """A text, such as an error of a driver, without secrets, without longer parts of them and in whatever notation.

    >>> scrubbed('invalid value "hunt%20er2" of user anna', ["hunt er2", "", "anna"])
    'invalid value "***" of user ***'
    """
    covered = [False] * len(text)
    for form in {form for secret in secrets if len(secret) >= _SHORT for form in _forms(secret)}:
        size = min(len(form), _LONG)
        parts = {form[k : k + size] for k in range(len(form) - size + 1)}
        for k in range(len(text) - size + 1):
            if text[k : k + size] in parts:
                covered[k : k + size] = [True] * size
    runs = groupby(zip(text, covered, strict=True), key=itemgetter(1))
    return "".join(HIDDEN if hidden else "".join(letter for letter, _ in run) for hidden, run in runs)


def _forms(secret: str) -> set[str]:
    known = {secret, unquote(secret), unquote_plus(secret)}
    encoded = [plain.encode("utf-8", "surrogatepass") for plain in known]
    written = {form for code in encoded for form in (quote(code), quote(code, safe=""), quote_plus(code))}
    literal = {form[1:-1] for plain in known for form in (repr(plain), ascii(plain), json.dumps(plain))}
    as_bytes = {repr(code)[2:-1] for code in encoded}
    return {form for form in known | written | literal | as_bytes if len(form) >= _SHORT}


def database_url(text: str) -> sa.URL:
    """The URL of a database; what is wrong with it is a ValueError that repeats nothing of it.

    >>> database_url("postgresql://anna:x@y@host/db")
    Traceback (most recent call last):
    ...
    ValueError: the URL has several @: write one that is within a password as %40, and / as %2F
    """
    try:
        url = sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError):
        raise ValueError("this is no URL: write sqlite:///FILE or postgresql://HOST/DATABASE") from None
    if url.host is not None and text.count("@") > 1:  # part of the password would be looked up as a host
        raise ValueError("the URL has several @: write one that is within a password as %40, and / as %2F")
    return url
