"""torchvision's side of torchvision_test.cpp: FOLDER names MODEL... or FOLDER run MODEL."""

import sys

import tensors
import torch
import torchvision

folder, task, *models = sys.argv[1:]


def lines(named):
    return [f"{key} {','.join(map(str, value.shape))}" for key, value in named]


def names():
    for name in models:
        with torch.device("meta"):
            model = getattr(torchvision.models, name)(num_classes=10)
        tensors.write_lines(folder, f"parameters.{name}", lines(model.named_parameters()))
        tensors.write_lines(folder, f"buffers.{name}", lines(model.named_buffers()))


def run():
    torch.manual_seed(5)
    model = getattr(torchvision.models, models[0])(num_classes=10)
    left = {f"first.{key}": value.clone() for key, value in model.named_parameters()}
    # Batch norms start as the identity: give them something to do.
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
            torch.nn.init.uniform_(module.bias, -0.5, 0.5)
            torch.nn.init.uniform_(module.running_mean, -0.5, 0.5)
            torch.nn.init.uniform_(module.running_var, 0.5, 1.5)
    for key, value in model.state_dict().items():
        left[f"state.{key}"] = value.clone()
    left["x"] = torch.randn(4, 3, 64, 64)
    for mode in ("eval", "train"):
        model.train(mode == "train")
        model.zero_grad()
        y = model(left["x"])
        torch.nn.functional.cross_entropy(y, torch.arange(4)).backward()
        left[f"{mode}.y"] = y
        for key, value in model.named_parameters():
            left[f"{mode}.grad.{key}"] = value.grad.clone()
    for key, value in model.named_buffers():
        left[f"after.{key}"] = value
    tensors.write(folder, left)


{"names": names, "run": run}[task]()
