"""A search as a bluesky plan: the policy decides what is set, and every reading is an event of the run."""

import bluesky.plan_stubs as bps
import bluesky.preprocessors as bpp
import numpy as np
from bluesky import RunEngine
from ophyd import Component, Device, Signal
from ophyd.status import Status

from eccaht import Problem, Simulator, families, make_policy
from eccaht.measurements import Box, Readout

# A mask in front of a detector lets through a part of each of 20 beamlets, 0 to 1, and 4 in all. Their intensities
# fluctuate together; the detector adds noise of 0.2. A misaligned beamlet has lost 2 units of its 10.
problem = Problem(
    families.exponential(20, length_scale=4.0),
    mean=10.0,
    shift=-2.0,
    n_anomalies=2,
    measurements=Readout(4.0, noise=0.2) & Box(0.0, 1.0),
)


class MaskedDetector(Device):
    """Transmissions that can be set, and the intensity behind them; here simulated."""

    transmission = Component(Signal, value=np.zeros(problem.size), kind="normal")
    intensity = Component(Signal, value=0.0, kind="hinted")
    world = Simulator(problem, anomalies=[4, 13], seed=5)

    def set(self, c):
        """Move the mask."""
        return self.transmission.set(np.array(c))

    def trigger(self):
        """Expose once."""
        self.intensity.put(self.world.measure(self.transmission.get()))
        status = Status()
        status.set_finished()
        return status


def search(policy, detector, *, most=200, md=None):
    """Measure what the policy asks for until it is sure: one run, an event for each reading and for what follows."""
    sure = Signal(name="probability", value=0.0)
    named = Signal(name="decision", value=policy.decision)

    @bpp.stage_decorator([detector])
    @bpp.run_decorator(md={"plan_name": "search", "streams": policy.problem.size, **(md or {})})
    def inner():
        while not policy.should_stop() and policy.n_readings < most:
            yield from bps.checkpoint()
            c = policy.ask()
            yield from bps.mv(detector, c)
            yield from bps.trigger_and_read([detector])
            policy.tell(c, (yield from bps.rd(detector.intensity)))
            yield from bps.mv(sure, policy.confidence.probability, named, policy.decision)
            yield from bps.trigger_and_read([sure, named], name="belief")

    yield from inner()
    return policy.decision


documents = []
RE = RunEngine(call_returns_result=True)
policy = make_policy("joint", problem, seed=2, alpha=0.001)
outcome = RE(search(policy, MaskedDetector(name="detector")), lambda name, document: documents.append((name, document)))
print(outcome.exit_status, "beamlets", outcome.plan_result)

# The documents hold all that the search was given: another policy comes to the same answer from them.
again = make_policy("joint", problem, seed=9, alpha=0.001)
primary = {document["uid"] for name, document in documents if name == "descriptor" and document["name"] == "primary"}
for name, document in documents:
    if name == "event" and document["descriptor"] in primary:
        again.tell(document["data"]["detector_transmission"], document["data"]["detector_intensity"])
print("from the documents:", again.decision, "sure:", again.should_stop())
