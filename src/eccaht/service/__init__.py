"""The service: plants watched round the clock, fed over the network, shown on a page (extra [live]).

From below: `rows` is what sources bring; `store` keeps, `sources` read brokers, databases and files; `security` and
`alerts`; `settings`; `runtime` is the thread that turns rows into windows, events and stored steps; `api` answers over
HTTP and serves `page`; `operations` checks, copies and backs up a store; `demo` simulates a plant.

The way of a row: `api/plants.py` (or a source) reads it, `runtime/engine.py` hands it to the thread of
`runtime/worker.py`, `eccaht.plants.intake` makes windows of it, `runtime/plant.py` has the watch of
`eccaht.plants.watch` judge these, `store/store.py` writes all of that at once, `runtime/views.py` publishes it.

To add a source: its settings in `sources/settings.py`, which name its class, and a file beside it with that class, a
`Feed`.
"""
