"""Plants: from a user's own rows to the sensors that are wrong.

From below: `data` turns files, frames and growing files into rows and windows; `model` learns normal operation from a
history; `incident` is the one engine (alarms, dates, names, drills, answers); `watch` runs it window by window and
makes events. `replay`, `explain` and `diagnose` serve searches by weighted sums of sensors on the same data.
"""
