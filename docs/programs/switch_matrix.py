"""Which of 24 thermocouples are wrong? A switch matrix adds and subtracts them, on a serial line."""

import socketserver
import threading

import numpy as np
import serial
from pymeasure.adapters import SerialAdapter
from pymeasure.instruments import Instrument

from eccaht import Problem, Simulator, families, make_policy, search
from eccaht.measurements import AtMost, Levels

# 24 inputs in series, each as it is (+1), reversed (-1) or left out (0), at most 6 at once. Neighbours drift together
# by 1 K (rho 0.9); the voltmeter adds noise of 0.5 K to each reading. A wrong thermocouple reads 3 K too much.
problem = Problem(
    families.toeplitz(24, rho=0.9),
    shift=3.0,
    n_anomalies=2,
    measurements=Levels([-1, 0, 1]) & AtMost(6),
    readout_noise=0.5,
    names=[f"TC{number:02d}" for number in range(1, 25)],
)


class SwitchMatrix(Instrument):
    """A switch matrix with an integrating voltmeter behind it."""

    def __init__(self, adapter, name="switch matrix", **kwargs):
        super().__init__(adapter, name, includeSCPI=False, **kwargs)

    identity = Instrument.measurement("*IDN?", "Who answers.", cast=str, maxsplit=0)
    route = Instrument.setting(
        "ROUT %s", "Close these inputs, 1 to 24, reversed where negative: '3,-7'.", check_set_errors=True
    )
    reading = Instrument.measurement("READ?", "Integrate once, in kelvin.")

    def check_set_errors(self):
        """Ask whether the last command was understood."""
        answer = self.ask("SYST:ERR?")
        if not answer.startswith("0"):
            raise ConnectionError(f"{self.name}: {answer}")
        return []

    def measure(self, c):
        """One reading of the weights c, all of them -1, 0 or 1."""
        self.route = ",".join(str(int(c[k]) * (int(k) + 1)) for k in np.flatnonzero(c))
        return self.reading


class SimulatedMatrix(socketserver.StreamRequestHandler):
    """The other end of the line, for this page alone: it answers as the instrument would."""

    world = Simulator(problem, anomalies=[6, 15], seed=3)
    closed, error = np.zeros(24), "0,No error"

    def handle(self):
        """Answer line by line until the line is closed."""
        for line in self.rfile:
            command, _, argument = line.decode().strip().partition(" ")
            if command == "ROUT":
                self.closes([int(text) for text in argument.split(",")])
            else:
                self.wfile.write((self.answer(command) + "\n").encode())

    def closes(self, inputs):
        """Close these relays and no others, or refuse."""
        if len(inputs) > 6 or not all(1 <= abs(number) <= 24 for number in inputs):
            self.error = "-222,Data out of range"
            return
        self.closed = np.zeros(24)
        for number in inputs:
            self.closed[abs(number) - 1] = np.sign(number)

    def answer(self, command):
        """What a question is answered with."""
        if command == "*IDN?":
            return "Simulated,Switch matrix,0,1.0"
        if command == "SYST:ERR?":
            said, self.error = self.error, "0,No error"
            return said
        return f"{self.world.measure(self.closed):.6f}"


with socketserver.ThreadingTCPServer(("127.0.0.1", 0), SimulatedMatrix) as line:
    threading.Thread(target=line.serve_forever, daemon=True).start()
    # Your instrument: SerialAdapter("/dev/ttyUSB0", baudrate=9600, timeout=5, write_termination="\n", ...)
    # or VISAAdapter("ASRL3::INSTR", write_termination="\n", read_termination="\n")
    port = serial.serial_for_url("socket://{}:{}".format(*line.server_address), timeout=5)
    matrix = SwitchMatrix(SerialAdapter(port, write_termination="\n", read_termination="\n"))
    print(matrix.identity)
    result = search(make_policy("joint", problem, seed=1, alpha=0.001), matrix.measure, max_measurements=200)
    print(*result.names, "after fewer than 40 readings:", result.n_measurements < 40)
    matrix.adapter.close()
    line.shutdown()
