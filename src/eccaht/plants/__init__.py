"""Plants: from a user's own rows to the sensors that are wrong.

From below: `data` turns files, frames and growing files into rows and windows; `model` learns normal operation from a
history; `intake` turns rows into windows as they come; `incident` is the one engine (alarms, dates, names, drills,
answers); `watch` runs it window by window and makes events. `replay` lets a search by weighted sums read the same data;
`retrain` renews a model. `tuning` holds the numbers that were chosen, `answer` what is answered, and `show` words and
draws it. `front`, on top, is what users call: `eccaht` itself exports it.
"""

from eccaht.base.lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
