"""What every floor needs and what knows no stream and no plant.

`arrays` checks and shapes numbers, `files` and `archive` write without half files and without pickle, `clock` and
`durations` read times, `presentation` makes texts, tables, figures and pages, `statistics` intervals, `randomness`
named generators, `compiled` and `sums` make inner loops fast, `extras` says what to install where an optional package
is missing.
"""
