"""Experiments, labelled collections, and the paper with its verdicts."""
