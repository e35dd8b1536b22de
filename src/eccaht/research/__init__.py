"""What compares, measures and reproduces.

`experiments` runs policies and detectors side by side, `datasets` reads public records, `paper` has every experiment,
figure and claim of the paper with a verdict on each.
"""
