"""What the authors of the paper have for the experiments of its revision: mean readings, standard error, wrong sets.

The ablation is the published table (results_algorithm1/algorithm1_results.tex at commit c6bb63b of
VincentdeCristo/ECC-AHT; 300 searches a row). The other numbers are stored in their repository as compressed raw
trials; here they come from the published protocol run again with the published seeds (300 searches a row, 3,000 for
coverage). Run again in that way, 16 of the 20 rows of the ablation agree in every digit. The rows of Algorithm 1
under Toeplitz noise do not: there the last bits of an inverse break ties between streams, and processors differ.
"""

from __future__ import annotations

Published = tuple[float, float, int]

_ABLATION: dict[str, tuple[Published, ...]] = {  # identity, equicorrelation 0.9, toeplitz 0.5, toeplitz 0.9
    "ecc-aht-verified": ((112.69, 2.78, 0), (13.90, 0.48, 0), (185.54, 4.95, 1), (67.31, 1.78, 0)),
    "plain-contrast": ((112.69, 2.78, 0), (13.90, 0.48, 0), (102.46, 2.59, 0), (52.68, 1.38, 0)),
    "random-streams": ((384.87, 6.73, 0), (390.49, 6.73, 1), (395.81, 7.74, 0), (396.50, 7.24, 0)),
    "random-pair": ((355.69, 6.31, 0), (53.01, 1.03, 0), (333.11, 6.08, 0), (151.88, 2.86, 0)),
    "no-exploration": ((104.35, 2.63, 0), (11.78, 0.40, 0), (193.01, 5.58, 1), (65.18, 1.88, 0)),
}
_COVERAGE: dict[str, tuple[Published, ...]] = {  # identity at alpha 0.05 and 0.01, toeplitz 0.5 at the same
    "two-stage": ((31.67, 0.42, 21), (40.83, 0.54, 5), (30.70, 0.45, 26), (36.95, 0.55, 2)),
    "ecc-aht-verified": ((20.49, 0.22, 39), (25.96, 0.26, 4), (12.76, 0.20, 17), (16.21, 0.25, 2)),
    "oracle-design": ((10.59, 0.12, 0), (13.78, 0.13, 0), (6.16, 0.06, 0), (7.90, 0.07, 0)),
}
_RATE: dict[str, tuple[Published, ...]] = {  # identity at alpha 1e-3 to 1e-48, toeplitz 0.5 at the same
    "two-stage": (
        (47.78, 1.97, 0),
        (81.05, 3.02, 0),
        (123.02, 4.58, 0),
        (217.03, 9.40, 0),
        (337.47, 12.76, 0),
        (44.58, 2.09, 0),
        (67.37, 3.24, 0),
        (103.56, 5.39, 0),
        (178.09, 10.98, 0),
        (267.02, 18.28, 0),
    ),
    "ecc-aht-verified": (
        (33.38, 0.98, 0),
        (54.10, 1.18, 0),
        (98.04, 1.64, 0),
        (181.87, 2.38, 0),
        (335.70, 2.58, 0),
        (20.39, 0.64, 0),
        (35.38, 1.22, 0),
        (66.23, 2.28, 0),
        (118.62, 3.11, 0),
        (231.65, 6.77, 0),
    ),
    "oracle-design": (
        (18.48, 0.48, 0),
        (32.17, 0.65, 0),
        (61.80, 0.87, 0),
        (114.08, 1.19, 0),
        (225.42, 1.68, 0),
        (10.87, 0.28, 0),
        (17.39, 0.35, 0),
        (33.64, 0.49, 0),
        (61.98, 0.69, 0),
        (123.42, 0.93, 0),
    ),
}
_SWEEPS: tuple[Published, ...] = (  # in the order of the settings
    (200.58, 6.81, 2),  # budget
    (200.58, 6.81, 2),  # budget
    (200.58, 6.81, 2),  # budget
    (819.20, 30.82, 1),  # signal
    (197.42, 5.30, 0),  # signal
    (50.05, 1.32, 0),  # signal
    (26.87, 0.95, 6),  # anomalies
    (90.87, 2.64, 3),  # anomalies
    (158.78, 3.66, 2),  # anomalies
    (228.91, 4.85, 1),  # anomalies
    (94.54, 2.48, 0),  # correlation
    (67.36, 1.76, 0),  # correlation
    (47.88, 1.09, 0),  # correlation
    (26.23, 0.78, 0),  # correlation
    (156.33, 4.47, 2),  # correlation
    (189.73, 5.00, 0),  # correlation
    (192.29, 6.44, 0),  # correlation
    (125.27, 4.04, 0),  # correlation
    (192.75, 7.28, 1),  # confidence
    (198.81, 5.28, 1),  # confidence
    (217.67, 6.11, 0),  # confidence
    (233.43, 6.22, 0),  # confidence
    (252.94, 9.03, 0),  # confidence
    (197.77, 5.89, 0),  # geometry
    (76.42, 1.66, 0),  # geometry
)

PUBLISHED: dict[tuple[str, int, str], Published] = {
    **{("revised-ablation", k, row): found for row, many in _ABLATION.items() for k, found in enumerate(many)},
    **{("revised-coverage", k, row): found for row, many in _COVERAGE.items() for k, found in enumerate(many)},
    **{("revised-rate", k, row): found for row, many in _RATE.items() for k, found in enumerate(many)},
    **{("revised-sweeps", k, "ecc-aht-verified"): found for k, found in enumerate(_SWEEPS)},
}
