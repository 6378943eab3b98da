"""An ordinary DDP script, as under torchrun: trains a line, and prints what every rank has at the end."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = int(os.environ["LOCAL_RANK"])
torch.manual_seed(rank)  # DDP makes the weights those of rank 0
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    generator = torch.Generator().manual_seed(100 * step + dist.get_rank())
    batch = torch.randn(8, 4, generator=generator)
    optimizer.zero_grad()
    (model(batch) - batch.sum(1, keepdim=True)).pow(2).mean().backward()
    optimizer.step()
weights = model.module.weight.detach().sum().item()
os.write(1, f"ddp rank {dist.get_rank()} of {dist.get_world_size()} weights {weights:.6f}\n".encode())
dist.destroy_process_group()
