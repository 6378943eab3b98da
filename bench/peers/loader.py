#!/usr/bin/env python3
"""torch DataLoader on the job of bench/loader_bench.cpp: names alone, eight workers.

usage: loader.py FOLDER SMALL_FOLDER
"""

import json
import os
import pathlib
import sys
import time

import torch
from torchvision.datasets import ImageFolder

BATCH, WORKERS = 256, 8


class Names(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.samples = ImageFolder(folder).samples

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        name, label = self.samples[index]
        return torch.full((3, 32, 32), hash(name) & 255, dtype=torch.uint8), label


def loader_over(folder):
    return torch.utils.data.DataLoader(Names(folder), BATCH, shuffle=True, num_workers=WORKERS, persistent_workers=True)


def median(values):
    return sorted(values)[len(values) // 2]


def epoch_gap(loader):
    steps, over_the_end = [], []
    for epoch in range(6):
        first, before = True, time.perf_counter()
        for _ in loader:
            waited = time.perf_counter() - before
            if epoch > 0:
                (over_the_end if first else steps).append(waited)
            first = False
            time.sleep(0.005)
            before = time.perf_counter()
    return 1e3 * median(steps), 1e3 * median(over_the_end)


def pss(pid):
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0


def family():
    pids = [os.getpid()]
    for pid in pids:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            pids += map(int, (task / "children").read_text().split())
    return pids


def main():
    folder, small = sys.argv[1:]
    begin = time.perf_counter()
    large = loader_over(folder)
    batches = iter(large)
    next(batches)
    first_batch = time.perf_counter() - begin
    wait, over_the_end = epoch_gap(loader_over(small))
    memory = sum(pss(pid) for pid in family())
    print(json.dumps({"names": len(large.dataset), "first_batch_s": first_batch, "wait_ms": wait,
                      "epoch_gap_ms": over_the_end - wait, "memory_mib": memory}))


if __name__ == "__main__":
    main()
