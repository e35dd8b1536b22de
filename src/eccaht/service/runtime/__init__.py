"""The plants at work: rows become windows in one thread, which stores, and what changed goes to all who listen."""
