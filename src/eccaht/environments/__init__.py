"""Where readings come from."""

from eccaht.environments.simulated import Simulator

__all__ = ["Simulator"]
