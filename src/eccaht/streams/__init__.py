"""Streams with a known covariance: problem, designs, posteriors, policies, stopping, the loop, limits, the watch."""
