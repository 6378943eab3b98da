"""Python DDP's side of ddp_twin_test.cpp: FOLDER steps | unused | traced, two Gloo ranks each."""

import os
import sys

import tensors
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

RANKS = 2


class SmallNet(nn.Module):
    """equality.hpp's SmallNet."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.hidden = nn.Linear(4 * 6 * 6, 16)
        self.out = nn.Linear(16, 5)

    def forward(self, x):
        return self.out(torch.tanh(self.hidden(F.relu(self.conv(x)).flatten(1))))


class Toy2(nn.Module):
    def __init__(self, uses):
        super().__init__()
        self.a = nn.Linear(1, 1, bias=False)
        self.b = nn.Linear(1, 1, bias=False)
        self.uses = uses
        nn.init.ones_(self.a.weight)
        nn.init.ones_(self.b.weight)

    def forward(self, x):
        y = torch.zeros_like(x)
        if "a" in self.uses:
            y = y + self.a(x)
        if "b" in self.uses:
            y = y + self.b(x)
        return y


def load(model, given, prefix):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(given[f"{prefix}{name}"])


def steps(rank, given):
    """Five steps of SGD with momentum; two micro-batches in each, the first without synchronisation."""
    model = SmallNet()
    load(model, given, "start.")
    ddp = DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(5):
        images, labels = given[f"images.{step}"][rank::RANKS], given[f"labels.{step}"][rank::RANKS]
        half = len(images) // 2
        optimizer.zero_grad()
        with ddp.no_sync():
            (F.cross_entropy(ddp(images[:half]), labels[:half]) / 2).backward()
        (F.cross_entropy(ddp(images[half:]), labels[half:]) / 2).backward()
        optimizer.step()
    return {f"end.{name}": value.detach() for name, value in model.named_parameters()}


def unused(rank, given):
    """Rank 0 uses a, rank 1 uses b; then both use a only."""
    left = {}
    for case, uses in (("split", "ab"[rank]), ("a", "a")):
        model = Toy2(uses)
        ddp = DistributedDataParallel(model, find_unused_parameters=True)
        ddp(torch.full((1, 1), 1.0 + rank)).sum().backward()
        for name, parameter in model.named_parameters():
            left[f"{case}.{name}"] = torch.tensor(float("nan")) if parameter.grad is None else parameter.grad.reshape(())
    return left


def traced(rank, given):
    """Gradients of a traced torchvision ResNet-18; the trace itself is left in resnet18.pt."""
    model = torch.jit.load(os.path.join(sys.argv[1], "resnet18.pt"))
    ddp = DistributedDataParallel(model, gradient_as_bucket_view=True)
    left = {}
    for _ in range(2):
        model.zero_grad()
        F.cross_entropy(ddp(given["x"][rank::RANKS]), given["y"][rank::RANKS]).backward()
    for name, parameter in model.named_parameters():
        left[f"grad.{name}"] = parameter.grad.detach().clone()
    return left


def trace_resnet18(folder, given):
    import torchvision

    torch.manual_seed(3)
    model = torchvision.models.resnet18(num_classes=5)
    torch.jit.trace(model, given["x"][::RANKS]).save(os.path.join(folder, "resnet18.pt"))


def rank_main(rank, folder, task, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=RANKS)
    left = globals()[task](rank, tensors.read(folder))
    dist.barrier()
    if rank == 0:
        torch.save(left, os.path.join(folder, "left.pt"))
    dist.destroy_process_group()


def free_port():
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


if __name__ == "__main__":
    folder, task = sys.argv[1:3]
    if task == "traced":
        trace_resnet18(folder, tensors.read(folder))
    mp.spawn(rank_main, args=(folder, task, free_port()), nprocs=RANKS)
    tensors.write(folder, torch.load(os.path.join(folder, "left.pt")))
