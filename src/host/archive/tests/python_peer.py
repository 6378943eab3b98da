"""The other side of python_test.cpp: real Python torch and safetensors.

usage: python_peer.py write DIR    writes files of every kind, each with what it holds in FILE.json
       python_peer.py check DIR    loads each file that C++ wrote (*.back.*, cpp.*) and compares it with FILE.json
"""

import collections
import json
import os
import pathlib
import struct
import sys
import warnings

import safetensors.torch
import torch
import torch.utils.serialization

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
          torch.int8, torch.uint8, torch.bool]


def flat(value, key=""):
    """What python_test.cpp's flat() makes of the same data: one [key, kind, content ...] a leaf, in order."""
    if isinstance(value, torch.Tensor):
        data = value.detach().contiguous().reshape(-1).view(torch.uint8) if value.numel() else torch.tensor([])
        return [[key, "tensor", str(value.dtype)[6:], list(value.shape), bytes(data.tolist()).hex(),
                 value.requires_grad]]
    if isinstance(value, dict):
        kind = "ordered" if isinstance(value, collections.OrderedDict) else "dict"
        return [[key, kind, len(value)]] + [row for k, v in value.items() for row in flat(v, f"{key}/{k}")]
    if isinstance(value, (list, tuple, set)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return [[key, kind, len(value)]] + [row for i, v in enumerate(value) for row in flat(v, f"{key}/{i}")]
    if value is None:
        return [[key, "none"]]
    if isinstance(value, bool):
        return [[key, "bool", value]]
    if isinstance(value, int):
        return [[key, "int", value]]
    if isinstance(value, float):
        return [[key, "float", struct.unpack("<q", struct.pack("<d", value))[0]]]
    if isinstance(value, (torch.dtype, torch.device)):
        return [[key, "string", str(value)]]
    assert isinstance(value, str), type(value)
    return [[key, "string", value]]


class Net(torch.nn.Module):
    """Linear and batch norm, and a second linear whose weight is the first's."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.last = torch.nn.Linear(4, 4)
        self.last.weight = self.first.weight

    def forward(self, x):
        return self.last(self.norm(self.first(x)))


class Evil:
    def __init__(self, folder):
        self.command = f"touch {folder}/evil-was-run"

    def __reduce__(self):
        return os.system, (self.command,)


def trained(optimizer_class, **options):
    torch.manual_seed(7)
    net = Net()
    optimizer = optimizer_class(net.parameters(), **options)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.randn(8, 4)).square().sum().backward()
        optimizer.step()
    return net, optimizer


def every_dtype():
    numbers = torch.tensor([0.0, 1.0, 2.0, 100.0, 3.0, 1.0])
    return {str(dtype)[6:]: numbers.to(dtype).reshape(2, 3) for dtype in DTYPES}


def plain_data():
    million = torch.arange(1_000_000, dtype=torch.float32)
    image = torch.arange(24, dtype=torch.float32).reshape(1, 2, 3, 4)
    net, sgd = trained(torch.optim.SGD, lr=0.1, momentum=0.9)
    _, adamw = trained(torch.optim.AdamW, lr=1e-3)
    return {
        "state": net.state_dict(),
        "plain": every_dtype(),
        "nested": {"model": net.state_dict(), "optimizer": sgd.state_dict(), "epoch": 3, "best": 0.5, "name": "Grüße"},
        "adamw": adamw.state_dict(),
        "views": {"t": image.permute(3, 0, 2, 1), "last": image.to(memory_format=torch.channels_last),
                  "holes": image[..., ::2], "scalar": torch.tensor(7), "empty": torch.empty(0, 3),
                  "expanded": torch.arange(3).expand(2, 3), "strided": million[5:50:7]},
        "slices": {"a": million[10:20], "b": million[5:15], "t": million[:6].reshape(2, 3).t()},
        "parameter": {"p": torch.nn.Parameter(torch.ones(2)),
                      "frozen": torch.nn.Parameter(torch.ones(2), requires_grad=False)},
        "tensor": torch.arange(5),
        "odds": {"size": torch.Size([2, 3]), "dtype": torch.bfloat16, "device": torch.device("cuda", 1), "set": {1, 2},
                 "count": collections.Counter("aab"), "none": None, "flags": [True, False],
                 "ints": [0, 255, 256, 65535, 65536, -1, 2**31 - 1, 2**31, -2**31, -2**31 - 1, 2**62, -2**63],
                 1: {2: ("x", ())}, "same": [(1, 2)] * 3,
                 "inf": float("-inf"), "many": {str(i): i for i in range(3000)}},
    }


def write(folder):
    for name, value in plain_data().items():
        torch.save(value, folder / f"{name}.pt")
        (folder / f"{name}.pt.json").write_text(json.dumps(flat(value)))
    torch.utils.serialization.config.save.compute_crc32 = False
    torch.save(every_dtype(), folder / "nocrc.pt")
    (folder / "nocrc.pt.json").write_text(json.dumps(flat(every_dtype())))
    torch.utils.serialization.config.save.compute_crc32 = True

    contiguous = {name: tensor for name, tensor in every_dtype().items()} | {"none": torch.empty(0, 2)}
    safetensors.torch.save_file(contiguous, folder / "m.safetensors", metadata={"format": "pt"})
    in_file_order = safetensors.torch.load_file(folder / "m.safetensors")
    (folder / "m.safetensors.json").write_text(json.dumps(flat(in_file_order)))

    # What must be refused.
    torch.save(torch.nn.Linear(1, 1), folder / "module.pt")
    torch.save(Evil(folder), folder / "evil.pt")
    torch.save({"best": torch.ones(3).numpy()[0]}, folder / "numpy.pt")
    torch.save(torch.ones(2, dtype=torch.complex64), folder / "complex.pt")
    torch.save(torch.ones(2, dtype=torch.uint16), folder / "uint16.pt")
    torch.save(torch.ones(2), folder / "protocol4.pt", pickle_protocol=4)
    torch.save(torch.ones(2), folder / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.jit.save(torch.jit.script(torch.nn.Linear(1, 1)), folder / "script.pt")


def load(path):
    if path.suffix == ".safetensors":
        return safetensors.torch.load_file(path)
    return torch.load(path, weights_only=True)


def check(folder):
    checked = 0
    for path in sorted(folder.glob("*.json")):
        file = path.with_suffix("")
        if not (file.name.startswith("cpp") or ".back." in file.name):
            continue
        expected, found = json.loads(path.read_text()), flat(load(file))
        if file.suffix == ".safetensors":  # Python's reader does not promise an order
            expected, found = sorted(expected[1:]), sorted(found[1:])
        assert found == expected, f"{file.name}:\nfound    {found}\nexpected {expected}"
        checked += 1
    net, optimizer = trained(torch.optim.SGD, lr=0.1, momentum=0.9)
    nested = load(folder / "nested.back.pt")
    other = Net()
    other.load_state_dict(nested["model"], strict=True)
    assert all(torch.equal(a, b) for a, b in zip(net.state_dict().values(), other.state_dict().values()))
    assert nested["model"]["last.weight"].data_ptr() == nested["model"]["first.weight"].data_ptr(), "no longer tied"
    torch.optim.SGD(other.parameters(), lr=1.0).load_state_dict(nested["optimizer"])
    print(f"checked {checked} files")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    {"write": write, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2]))
