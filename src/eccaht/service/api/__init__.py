"""The service over HTTP: routes in `plants`, `past` and `health`, their `shapes`, the page's `files`, the `app` of all
these, and `serving`, which runs it as a program.
"""
