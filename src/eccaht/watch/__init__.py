"""Watching streams round the clock: an alarm in time, rarely a false one, and the streams named."""
