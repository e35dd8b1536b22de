"""Plants: from rows to the sensors that are wrong. Data, normal operation, the engine, drills, answers, the watch."""
