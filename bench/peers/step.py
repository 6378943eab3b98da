"""The rival of yoke-bench: the same model, data, optimizer and timing in Python PyTorch.

    torchrun --nproc-per-node 2 bench/peers/step.py --model mlp --batch 8 --steps 200 --parallel ddp
"""

import argparse
import json
import math
import os
import statistics
import time

import torch
from torch import nn
import torch.nn.functional as F


class SmallCnn(nn.Module):
    """docs/models.md, small-cnn."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 5, padding=2)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc1 = nn.Linear(32 * 7 * 7, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def make_model(name):
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(),
                             nn.Linear(2048, 10))
    if name == "small-cnn":
        return SmallCnn()
    import torchvision

    return getattr(torchvision.models, name)()


def noise(count, seed):
    """Numbers in [-1, 1), the same as yoke-bench's."""
    waves = torch.sin(torch.arange(count, dtype=torch.float64) * 12.9898 + seed) * 43758.5453
    return ((waves - waves.floor()) * 2 - 1).to(torch.float32)


def fill_parameters(model):
    with torch.no_grad():
        for seed, (name, p) in enumerate(model.named_parameters(), start=1):
            if p.dim() < 2:
                p.fill_(0.0 if name.endswith("bias") else 1.0)
                continue
            fan = p.numel() // p.size(0)
            p.copy_((noise(p.numel(), seed) * math.sqrt(6.0 / fan)).view_as(p))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--parallel", default="ddp", choices=["ddp", "dp", "none"])
    parser.add_argument("--devices", type=int, default=1, help="of nn.DataParallel")
    parser.add_argument("--precision", default="fp32", choices=["auto", "fp32", "tf32", "bf16", "fp16"])
    parser.add_argument("--fused", action="store_true", help="torch.optim.SGD(fused=True) on a card")
    parser.add_argument("--graph", action="store_true", help="replay the whole step from a CUDA graph")
    parser.add_argument("--compile", default="", help="torch.compile mode: default, reduce-overhead, max-autotune, ...")
    parser.add_argument("--benchmark", action="store_true", help="torch.backends.cudnn.benchmark")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warmup", type=int, default=10)
    args = parser.parse_args()

    rank = int(os.environ.get("RANK", 0))
    world = int(os.environ.get("WORLD_SIZE", 1))
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
        torch.backends.cudnn.benchmark = args.benchmark
    if args.parallel == "ddp":
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29511")
        torch.distributed.init_process_group("nccl" if cuda else "gloo", rank=rank, world_size=world)

    if args.precision == "auto":
        args.precision = "fp32" if not cuda else "bf16" if torch.cuda.get_device_capability() >= (8, 0) else "fp16"
    if args.precision == "tf32":
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    small = args.model in ("mlp", "small-cnn")
    channels, side, classes = (1, 28, 10) if small else (3, 224, 1000)
    model = make_model(args.model)
    fill_parameters(model)
    model.to(device)
    numel = args.batch * channels * side * side
    images = (noise(numel, rank) * 1.7).view(args.batch, channels, side, side)
    labels = ((torch.arange(args.batch) * 7 + rank) % classes).to(device)
    images = images.to(device)
    if not small:
        model.to(memory_format=torch.channels_last)
        images = images.contiguous(memory_format=torch.channels_last)
    forward = model
    if args.parallel == "ddp":
        forward = nn.parallel.DistributedDataParallel(model, device_ids=[device.index] if cuda else None,
                                                      gradient_as_bucket_view=True)
    if args.parallel == "dp":
        forward = nn.DataParallel(model, device_ids=list(range(args.devices)))
    if args.compile:
        forward = torch.compile(forward, mode=args.compile)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, fused=args.fused or not cuda)

    loss = None
    low = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(args.precision)
    # The captured step keeps its scale, a small one, and looks for no infinity: as fast as PyTorch can be made here.
    scaler = torch.amp.GradScaler(device.type, enabled=args.precision == "fp16", init_scale=1024.0 if args.graph else 65536.0)

    def step():
        nonlocal loss
        optimizer.zero_grad()
        # The cache of cast weights must not outlive a captured step.
        with torch.autocast(device.type, dtype=low, enabled=low is not None, cache_enabled=not args.graph):
            loss = F.cross_entropy(forward(images), labels)
        scaler.scale(loss).backward()
        if args.graph and scaler.is_enabled():
            optimizer.grad_scale, optimizer.found_inf = scaler._scale, torch.zeros((), device=device)
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()

    if args.graph:
        eager = step
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(11):
                eager()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        optimizer.zero_grad()
        with torch.cuda.graph(graph):
            eager()
        step = graph.replay

    def wait():
        if cuda:
            torch.cuda.synchronize()

    step()
    wait()
    first_step_ns = time.time_ns()
    for _ in range(args.warmup - 1):
        step()
    wait()
    times = []
    block = 10 if cuda else 1
    for _ in range(0, args.steps, block):
        begin = time.perf_counter()
        for _ in range(block):
            step()
        wait()
        times.append((time.perf_counter() - begin) * 1000 / block)
    if rank == 0:
        print(json.dumps({"step_ms": statistics.median(times), "batch": args.batch, "ranks": world, "first_step_ns": first_step_ns,
                          "loss": round(loss.item(), 6),
                          "peak_bytes": torch.cuda.max_memory_allocated() if cuda else 0,
                          "allocated_bytes": torch.cuda.memory_allocated() if cuda else 0,
                          "reserved_bytes": torch.cuda.memory_reserved() if cuda else 0, "torch": torch.__version__}))
    if args.parallel == "ddp":
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
