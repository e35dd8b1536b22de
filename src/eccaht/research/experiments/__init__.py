"""The paper's experiments: each runs into a table, and each figure is drawn from its table alone."""
