"""Errors of drivers, which may repeat what they were given, without the secrets of a source."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable

from eccaht.service.hiding import scrubbed
from eccaht.service.sources.feed import Refused
from eccaht.service.sources.settings import AnySettings


def scrubbing(connect: Callable[[], Awaitable[None]], settings: AnySettings) -> Callable[[], Awaitable[None]]:
    """`connect`, whose errors hold no secret of these settings, nor do the errors that caused them."""

    async def connected() -> None:
        try:
            await connect()
        except Refused:  # of the service itself
            raise
        except Exception as error:
            secrets, whole = list(settings.secrets()), "".join(traceback.format_exception(error))
            if scrubbed(whole, secrets) == whole:
                raise
            raise ConnectionError(scrubbed(str(error), secrets) or type(error).__name__) from None

    return connected
