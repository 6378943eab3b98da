"""A Python rank that writes telemetry: rank 1 stands still in its loader while rank 0 waits for it."""

import os
import pathlib
import time

import yoke_telemetry

telemetry = yoke_telemetry.start()
rank = os.environ["RANK"]
folder = pathlib.Path(os.environ["TORCHELASTIC_ERROR_FILE"]).parent.parent


def load_the_next_batch():
    if rank == "1":
        time.sleep(600)


telemetry.step(12, samples=64, loss=0.5)
load_the_next_batch()
with telemetry.collective("all_reduce", nbytes=1 << 20):
    time.sleep(600)
