"""What a search found, and why: in words, tables and pictures."""

from eccaht.plants.explain.finding import Finding, Investigation, investigate

__all__ = ["Finding", "Investigation", "investigate"]
