"""Algorithms that choose measurements, composed from parts."""

from eccaht.streams.policies.ask_tell import from_ask_tell as from_ask_tell
from eccaht.streams.policies.catalogue import (
    CATALOGUE as CATALOGUE,
    DEFAULT_POLICY as DEFAULT_POLICY,
    Entry as Entry,
    make_policy as make_policy,
    policy_names as policy_names,
    register_policy as register_policy,
)
from eccaht.streams.policies.policy import BudgetWarning as BudgetWarning, Policy as Policy
from eccaht.streams.policies.storage import load_policy as load_policy
