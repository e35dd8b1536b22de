"""What holds for all tests."""

from __future__ import annotations

import os
import signal

# tests run side by side: threads of one would only wait for those of another; set before numpy is imported
for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

# a shell without job control starts background jobs with Ctrl-C ignored, and so would every command that tests start
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
