"""Run the numerical tests with every kernel of OpenBLAS that this processor can run: `make test-kernels`.

OpenBLAS chooses its arithmetic by the processor; OPENBLAS_CORETYPE chooses for it. Names that a build of OpenBLAS
serves by the same kernels run once.
"""

import os
import subprocess
import sys
from pathlib import Path

KERNELS = {  # and what the processor must have, as /proc/cpuinfo calls it
    "Prescott": "pni",
    "Nehalem": "sse4_2",
    "Sandybridge": "avx",
    "Haswell": "avx2",
    "Zen": "avx2",
    "SkylakeX": "avx512f",
    "Cooperlake": "avx512_bf16",
    "SapphireRapids": "amx_bf16",
}
TESTS = [  # solvers, samplers, sums and models; what is made of them is tested once
    *(f"tests/streams/{part}" for part in ("covariance", "designs", "limits", "measurements", "posterior", "watch")),
    *(f"tests/streams/policies/test_{name}.py" for name in ("bandits", "constraints", "transductive")),
    *(f"tests/plants/model/test_{name}.py" for name in ("calibration", "detectors", "estimators", "local", "model")),
    *(f"tests/plants/model/test_{name}.py" for name in ("normal", "shrinkage", "tails", "unpredicted")),
    *(f"tests/plants/incident/test_{name}.py" for name in ("dating", "engine", "naming")),
    "tests/base/test_statistics.py",
    "tests/checks",
]
CHOSEN = (
    "import numpy, scipy.linalg, threadpoolctl;"
    "print(*sorted({str(each['architecture']) for each in threadpoolctl.threadpool_info()"
    " if each['internal_api'] == 'openblas'}))"
)


def main(arguments: list[str]) -> int:
    """Return 1 if a test fails with any of the kernels; arguments are handed to pytest."""
    flags = _flags()
    done: dict[str, str] = {}
    failed = []
    for name, needed in KERNELS.items():
        if needed not in flags:
            print(f"{name}: left out, this processor lacks {needed}", flush=True)
            continue
        environment = os.environ | {"OPENBLAS_CORETYPE": name, "OPENBLAS_NUM_THREADS": "1"}
        asked = subprocess.run([sys.executable, "-c", CHOSEN], env=environment, capture_output=True, text=True)
        kernels = asked.stdout.strip()
        if asked.returncode or not kernels:
            print(f"{name}: left out, numpy and scipy do not use OpenBLAS here {asked.stderr[-200:]}", flush=True)
            continue
        if kernels in done:
            print(f"{name}: OpenBLAS has the same kernels for it as for {done[kernels]}", flush=True)
            continue
        done[kernels] = name
        print(f"{name}:", flush=True)
        if subprocess.run([sys.executable, "-m", "pytest", "--quiet", *TESTS, *arguments], env=environment).returncode:
            failed.append(name)
    print(f"kernels that ran: {', '.join(done.values()) or 'none'}; failed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


def _flags() -> set[str]:
    """What the processor can do; everything where the system does not say."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return set(KERNELS.values()) - {"avx512f", "avx512_bf16", "amx_bf16"}
    return {flag for line in text.splitlines() if line.startswith("flags") for flag in line.split()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
