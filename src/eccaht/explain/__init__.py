"""What a search found, and why: in words, tables and pictures."""

from eccaht.explain.finding import Finding, investigate

__all__ = ["Finding", "investigate"]
