"""What every layer needs and what knows no stream and no plant.

`arrays` checks and shapes numbers, `codec` checks and restores what classes declare, `files` writes without half files
and without pickle, `clock` reads times, `presentation` makes texts, tables, figures and pages, `statistics` intervals,
`randomness` named generators, `compiled` and `sums` make inner loops fast, `extras` says what to install where an
optional package is missing.
"""
