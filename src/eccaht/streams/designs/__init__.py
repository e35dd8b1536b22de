"""Measurement designs: which weights to give the streams.

A design picks the most informative contrast; the constraint of its `Problem` (`eccaht.measurements`) solves for it.
"""

from eccaht.base.arrays import Mask as Mask
from eccaht.streams.designs.information import InformationDesign as InformationDesign
from eccaht.streams.designs.pair import (
    Coordinates as Coordinates,
    Difference as Difference,
    PairDesign as PairDesign,
    PairToWeights as PairToWeights,
    Tree as Tree,
    alone as alone,
    pair_design as pair_design,
    single_stream as single_stream,
)
from eccaht.streams.designs.spread import SpreadDesign as SpreadDesign
