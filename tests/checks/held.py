"""Commands that stand still once a file is written, so that what a test does to them meets them there."""

import sys

_CODE = """
import os, sys, time

ending, replace = sys.argv.pop(1), os.replace


def hold(source, target):
    replace(source, target)
    if str(target).endswith(ending):
        time.sleep(600)


os.replace = hold
from eccaht.__main__ import main

main()
"""


def held_after(ending: str, *arguments: str) -> list[str]:
    """Return the command line of eccaht with these arguments that waits after its first file of this ending."""
    return [sys.executable, "-c", _CODE, ending, *arguments]
