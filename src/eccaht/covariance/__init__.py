"""Covariance operators: one narrow set of questions, each answered from structure."""

from eccaht.covariance import families
from eccaht.covariance.ar1 import AR1
from eccaht.covariance.base import Covariance
from eccaht.covariance.block_diagonal import BlockDiagonal
from eccaht.covariance.circulant import Circulant
from eccaht.covariance.dense import Dense, as_covariance
from eccaht.covariance.diagonal import Diagonal
from eccaht.covariance.kronecker import Kronecker
from eccaht.covariance.low_rank import LowRankPlusDiagonal
from eccaht.covariance.ridge import Ridged, with_ridge
from eccaht.covariance.sparse_precision import SparsePrecision
from eccaht.covariance.spectrum import effective_rank

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
