"""A rank of a Python job: finds the others by env://, as any DDP script does, and averages.

With the argument `fail` rank 1 raises an error, as a script under torchrun's @record does.
"""

import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record


@record
def main():
    dist.init_process_group("gloo")
    value = torch.tensor([float(dist.get_rank())])
    dist.all_reduce(value)
    mean = value.item() / dist.get_world_size()
    line = f"rank {dist.get_rank()} of {dist.get_world_size()} mean {mean} {sys.argv[1:]}\n"
    os.write(1, line.encode())
    if "fail" in sys.argv and dist.get_rank() == 1:
        raise ValueError("bad label 11 in sample 42")
    dist.barrier()
    dist.destroy_process_group()


main()
