"""The service: plants watched round the clock, fed over the network, shown on a page (extra [live]).

From below: `rows` is what sources bring; `store` keeps, `sources` read brokers, databases and files; `security` and
`alerts`; `settings`; `runtime` is the thread that turns rows into windows, events and stored steps; `api` answers over
HTTP and serves `page`; `operations` checks, backs up and moves a store; `demo` simulates a plant.
"""
