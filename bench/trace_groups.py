#!/usr/bin/env python3
"""Where the device's time of a step goes, from a trace of yoke-bench-step --profile.

    bench/trace_groups.py TRACE [--steps 3] [--kernels 25]
"""

import argparse
import collections
import json

# The first pattern that is part of a kernel's name gives its group.
GROUPS = (
    ("norm (ours)", ("statistics", "forward_plain", "forward_relu", "forward_add", "sums_", "backward_plain", "backward_relu",
                     "backward_add")),
    ("pooling", ("max_pool", "avg_pool", "adaptive")),
    ("norm (torch, cuDNN)", ("batch_norm", "bn_fw", "bn_bw", "batchnorm", "norm_")),
    ("communication", ("nccl",)),
    ("optimizer, gradient lists", ("multi_tensor", "FusedSgd", "fused_sgd", "foreach")),
    ("convolution, products", ("gemm", "conv", "cutlass", "xmma", "wgrad", "dgrad", "fprop", "implicit", "cudnn", "splitK", "nvjet",
                               "nchw", "nhwc")),
    ("copies, casts", ("copy", "Memcpy", "Memset", "cat")),
    ("pointwise, sums", ("elementwise", "reduce", "softmax", "nll", "fill", "Reduce")),
)


def group_of(name):
    for group, patterns in GROUPS:
        if any(pattern in name for pattern in patterns):
            return group
    return "other"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--kernels", type=int, default=25)
    args = parser.parse_args()
    with open(args.trace) as file:
        events = json.load(file)["traceEvents"]
    device = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    if not device:
        raise SystemExit(f"{args.trace}: no kernel in it")
    begin = min(e["ts"] for e in device)
    end = max(e["ts"] + e["dur"] for e in device)
    groups, kernels = collections.defaultdict(lambda: [0.0, 0]), collections.defaultdict(lambda: [0.0, 0])
    for e in device:
        for table, key in ((groups, group_of(e["name"])), (kernels, e["name"])):
            table[key][0] += e["dur"]
            table[key][1] += 1
    busy = sum(time for time, _ in groups.values())
    print(f"{(end - begin) / args.steps / 1000:8.3f} ms a step, {busy / args.steps / 1000:.3f} ms of kernels, "
          f"{len(device) / args.steps:.0f} launches")
    for table, limit in ((groups, len(groups)), (kernels, args.kernels)):
        print()
        for name, (time, count) in sorted(table.items(), key=lambda item: -item[1][0])[:limit]:
            print(f"{time / args.steps / 1000:8.3f} ms {count / args.steps:6.0f} x  {name[:120]}")


if __name__ == "__main__":
    main()
