"""Covariance operators: one narrow set of questions, each answered from structure."""

from eccaht.streams.covariance import families
from eccaht.streams.covariance.ar1 import AR1, Circulant
from eccaht.streams.covariance.base import Covariance, Ridged, with_ridge
from eccaht.streams.covariance.dense import Dense, Diagonal, as_covariance, effective_rank
from eccaht.streams.covariance.kronecker import BlockDiagonal, Kronecker
from eccaht.streams.covariance.low_rank import LowRankPlusDiagonal, SparsePrecision

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
