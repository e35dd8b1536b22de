"""What holds for all tests."""

from __future__ import annotations

import signal

# a shell without job control starts background jobs with Ctrl-C ignored, and so would every command that tests start
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
