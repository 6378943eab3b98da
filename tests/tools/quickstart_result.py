#!/usr/bin/env python3
"""usage: quickstart_result.py runs/quickstart/result.json

Checks what tools/quickstart left behind on real images: every promised key, files that exist at absolute paths, an accuracy of
0.90 or more after at most 3 minutes of training. Says each fault; exit 1 if there is one.
"""

import json
import os
import sys

KINDS = {"accuracy": float, "images_per_second": float, "ranks": int, "device": str, "seconds_to_first_step": float,
         "seconds": float, "state_dict": str, "safetensors": str}


def faults(result):
    for key, kind in KINDS.items():
        if not isinstance(result.get(key), kind):
            yield f"{key} is {result.get(key)!r}, not {kind.__name__}"
            return
    if not 0.90 <= result["accuracy"] <= 1.0:
        yield f"accuracy {result['accuracy']}: below 0.90"
    if not 0.0 < result["seconds"] <= 180.0:
        yield f"training took {result['seconds']} s: more than 180"
    for key in ("state_dict", "safetensors"):
        if not os.path.isabs(result[key]) or not os.path.isfile(result[key]):
            yield f"{key}: {result[key]} is not a file at an absolute path"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        found = list(faults(json.load(file)))
    for fault in found:
        print(f"{sys.argv[1]}: {fault}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
