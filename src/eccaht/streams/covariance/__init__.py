"""Covariance operators: one narrow set of questions, each answered from structure."""

from eccaht.streams.covariance import families
from eccaht.streams.covariance.ar1 import AR1
from eccaht.streams.covariance.base import Covariance
from eccaht.streams.covariance.block_diagonal import BlockDiagonal
from eccaht.streams.covariance.circulant import Circulant
from eccaht.streams.covariance.dense import Dense, as_covariance
from eccaht.streams.covariance.diagonal import Diagonal
from eccaht.streams.covariance.kronecker import Kronecker
from eccaht.streams.covariance.low_rank import LowRankPlusDiagonal
from eccaht.streams.covariance.ridge import Ridged, with_ridge
from eccaht.streams.covariance.sparse_precision import SparsePrecision
from eccaht.streams.covariance.spectrum import effective_rank

__all__ = [
    "AR1",
    "BlockDiagonal",
    "Circulant",
    "Covariance",
    "Dense",
    "Diagonal",
    "Kronecker",
    "LowRankPlusDiagonal",
    "Ridged",
    "SparsePrecision",
    "as_covariance",
    "effective_rank",
    "families",
    "with_ridge",
]
