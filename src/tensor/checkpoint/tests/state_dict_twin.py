"""The other side of twin_test.cpp: real Python torch and safetensors.

usage: state_dict_twin.py FOLDER compare

Loads what C++ wrote (cpp.pt, cpp.safetensors) into the same modules with strict=True and compares; writes py.pt,
ddp.pt, run.pt and py.safetensors.
"""

import pathlib
import sys

import safetensors.torch
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.last = torch.nn.Linear(4, 4)
        self.last.weight = self.first.weight
        self.register_buffer("mean", torch.zeros(2))
        self.scale = torch.nn.Parameter(torch.ones(1))


def fill_counting(net, start):
    count = start
    for name, tensor in net.state_dict().items():
        if name != "last.weight":
            tensor.copy_(torch.arange(count, count + tensor.numel()).reshape(tensor.shape))
            count += tensor.numel()


def main(folder):
    expected = Net()
    fill_counting(expected, 0)
    for file, load in (("cpp.pt", lambda path: torch.load(path, weights_only=True)),
                       ("cpp.safetensors", safetensors.torch.load_file)):
        state = load(folder / file)
        if file.endswith(".pt"):
            assert list(state) == list(expected.state_dict()), list(state)
        net = Net()
        net.load_state_dict(state, strict=True)
        for name, tensor in expected.state_dict().items():
            assert state[name].dtype == tensor.dtype, name
            assert torch.equal(net.state_dict()[name], tensor), name
    half = torch.load(folder / "cpp-bf16.pt", weights_only=True)
    assert half["w"].dtype == torch.bfloat16 and half["w"].tolist() == [0.5, 1.5, -2.0], half

    net = Net()
    fill_counting(net, 100)
    torch.save(net.state_dict(), folder / "py.pt")
    torch.save({"module." + name: tensor for name, tensor in net.state_dict().items()}, folder / "ddp.pt")
    torch.save({"model": net.state_dict(), "epoch": 3}, folder / "run.pt")
    torch.save(net.to(torch.bfloat16).state_dict(), folder / "bf16.pt")
    safetensors.torch.save_model(net.to(torch.float32), folder / "py.safetensors")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
