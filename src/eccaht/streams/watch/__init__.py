"""Streams of a problem, whose covariance is known, watched for steps: quickest detection, and which streams moved."""
