"""Algorithms that choose measurements, composed from parts."""

from eccaht.streams.policies.catalogue import CATALOGUE, DEFAULT_POLICY, make_policy, policy_names
from eccaht.streams.policies.policy import BudgetWarning, Policy
from eccaht.streams.policies.storage import load_policy

__all__ = ["CATALOGUE", "DEFAULT_POLICY", "BudgetWarning", "Policy", "load_policy", "make_policy", "policy_names"]
