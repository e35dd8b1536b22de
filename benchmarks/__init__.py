"""eccaht against general-purpose solvers, side by side in one run: `python -m benchmarks`.

Three parts: the time of a step, the time and accuracy of a design, and how a step scales with the number of
streams. Each lists its jobs and turns their rows into tables; figures are drawn from the same rows.
"""
