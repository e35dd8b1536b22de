"""Measurement designs: which weights to give the streams."""

from eccaht.design.pair import Design, PairDesign, pair_design

__all__ = ["Design", "PairDesign", "pair_design"]
