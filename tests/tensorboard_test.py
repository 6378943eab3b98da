"""The event files of a run, read back by the tensorboard package.

usage: tensorboard_test.py YOKE PYTHON   (YOKE: the front program; PYTHON: an interpreter with tensorboard)
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

READ_BACK = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
events.Reload()
tags = events.Tags()["scalars"]
print(json.dumps({tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in tags}))
"""


def skip(why):
    if os.environ.get("YOKE_REQUIRE_FULL") == "1":
        sys.exit(f"asked for by YOKE_REQUIRE_FULL=1, but {why}")
    print(f"skipped: {why}; tools/setup --full installs it")
    sys.exit(77)


def logged_scalars(run):
    """What log.jsonl holds, by tag: [[step, value], ...]."""
    scalars = {}
    for line in (run / "log.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record["kind"] in ("steps", "epoch"):
            for tag, value in record["values"].items():
                scalars.setdefault(tag, []).append([record["step"], value])
    return scalars


def main(yoke, python):
    if not pathlib.Path(python).exists():
        skip(f"there is no {python}")
    if subprocess.run([python, "-c", "import tensorboard"], capture_output=True).returncode != 0:
        skip(f"{python} has no package tensorboard")
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder) / "run"
        words = "train --data synthetic --max-steps 6 --log-every 2 --batch-size 32 --out".split()
        subprocess.run([yoke, *words, run], check=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
        read = json.loads(subprocess.run([python, "-c", READ_BACK, run], check=True, capture_output=True).stdout)
        logged = logged_scalars(run)

    assert "train/loss" in read and "eval/accuracy" in read, sorted(read)
    assert sorted(read) == sorted(logged), (sorted(read), sorted(logged))
    for tag, points in logged.items():
        assert [step for step, _ in read[tag]] == [step for step, _ in points], tag
        for (_, value), (_, expected) in zip(read[tag], points):
            assert abs(value - expected) <= 1e-6 * abs(expected), (tag, value, expected)  # float32 in the file
    print(f"{len(read)} tags, equal to log.jsonl")


if __name__ == "__main__":
    main(*sys.argv[1:])
