"""Tensors passed between a C++ test and its Python script; the format is in python_twin.hpp."""

import os

import numpy
import torch


def read(folder):
    """The tensors that the test gave, by name."""
    tensors = {}
    with open(os.path.join(folder, "index")) as index:
        for n, line in enumerate(index):
            name, dtype, *sizes = line.split()
            shape = [int(size) for size in sizes[0].split(",") if size] if sizes else []
            values = numpy.fromfile(os.path.join(folder, str(n)), dtype=dtype)
            tensors[name] = torch.from_numpy(values).reshape(shape)
    return tensors


def write(folder, tensors):
    """Leaves the tensors of a dictionary to the test."""
    lines = []
    for n, (name, tensor) in enumerate(tensors.items()):
        values = tensor.detach().contiguous().numpy()
        values.tofile(os.path.join(folder, str(n)))
        lines.append(f"{name} {values.dtype} {''.join(f'{size},' for size in values.shape)}\n")
    with open(os.path.join(folder, "index"), "w") as index:
        index.writelines(lines)


def write_lines(folder, name, lines):
    with open(os.path.join(folder, name), "w") as file:
        file.writelines(f"{line}\n" for line in lines)
