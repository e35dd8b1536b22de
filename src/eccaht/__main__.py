"""The command `eccaht`, also as `python -m eccaht`: ready for Ctrl-C before anything large is imported."""

import sys

from eccaht.base.extras import advice
from eccaht.cli import signals


def main() -> None:
    """Run the command line and exit."""
    signals.leave_at_once()
    try:
        from eccaht.cli.main import run
    except ImportError as error:  # pip install eccaht gives the library alone
        if (missing := advice(error.name)) is None:
            raise
        print("eccaht:", missing, file=sys.stderr)
        sys.exit(2)
    signals.unwind()
    signals.exit_with(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
