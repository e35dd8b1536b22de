"""All that is about one paper: its experiments, figures, claims and the report."""
