"""Streams with a known covariance: search them with few measurements, or watch them.

From below: `covariance` and `shifts` describe noise and faults, `measurements` says which weights are allowed,
`problem` puts these together; `posterior` holds what is believed, `designs` chooses a measurement, `policies` composes
both with a rule of `stopping`; `run` owns the loop, `limits` says what no search can beat, `watch` raises alarms.
"""

from eccaht.base.lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
