"""A search for a program in another language: one JSON object a line on the input, one line of answer on the output."""

import json
import sys
from pathlib import Path

from eccaht import Problem, families, load_policy, make_policy

FILE = Path("search.eccaht")  # every change is in it before it is answered
STREAMS = ["inlet", "outlet", "tank", "pump", "valve", "drain"]

if FILE.exists():
    policy = load_policy(FILE)
else:
    problem = Problem(families.toeplitz(6, rho=0.8), shift=4.0, n_anomalies=1, budget=3.0, names=STREAMS)
    policy = make_policy("joint", problem)


def answer(do, number=None, reading=None):
    if do == "ask":
        weights = policy.ask()
        policy.save(FILE)
        return {
            "weights": {STREAMS[k]: float(weights[k]) for k in weights.nonzero()[0]},
            "number": policy.n_readings + 1,
        }
    if do == "tell":
        if number == policy.n_readings + 1:  # a reading that is sent again, as after a crash, counts once
            policy.tell(policy.ask(), reading)
            policy.save(FILE)
        elif number not in range(1, policy.n_readings + 1):
            raise ValueError(f"reading {policy.n_readings + 1} is next, not {number}")
        return {"should_stop": bool(policy.should_stop())}
    if do == "decision":
        return {"names": policy.decision_names, "confidence": policy.confidence.probability}
    raise ValueError(f"do must be ask, tell or decision, not {do!r}")


for line in sys.stdin:
    try:
        given = answer(**json.loads(line))
    except (ValueError, TypeError) as error:  # a bad line changes nothing
        given = {"error": str(error)}
    print(json.dumps(given), flush=True)
