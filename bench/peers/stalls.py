"""Two ranks that average step by step, of which rank 1 stands still at step 5: stopped (`stop`), or asleep in its loader (`sleep`).

The averaging is played: a file of each rank per step; what counts is what the telemetry says.
"""

import os
import pathlib
import signal
import sys
import time

import yoke_telemetry

how = sys.argv[1]
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
folder = pathlib.Path(os.environ["TORCHELASTIC_ERROR_FILE"]).parent.parent
telemetry = yoke_telemetry.start()


def load_batch(step):
    if rank == 1 and step == 5:
        if how == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(600)


def average(step):
    with telemetry.collective("all_reduce", nbytes=1 << 20):
        (folder / f"step{step}-{rank}").touch()
        while not all((folder / f"step{step}-{other}").exists() for other in range(size)):
            time.sleep(0.001)


for step in range(100):
    load_batch(step)
    average(step)
    telemetry.step(step, samples=64)
