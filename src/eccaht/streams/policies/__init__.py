"""Algorithms that choose measurements, composed from parts."""

from eccaht.streams.policies.ask_tell import from_ask_tell
from eccaht.streams.policies.catalogue import CATALOGUE, DEFAULT_POLICY, Entry, make_policy, policy_names
from eccaht.streams.policies.policy import BudgetWarning, Policy
from eccaht.streams.policies.registry import register_policy
from eccaht.streams.policies.storage import load_policy

__all__ = [
    "CATALOGUE",
    "DEFAULT_POLICY",
    "BudgetWarning",
    "Entry",
    "Policy",
    "from_ask_tell",
    "load_policy",
    "make_policy",
    "policy_names",
    "register_policy",
]
