"""torch.optim's side of torch_optim_test.cpp: FOLDER train|go_on|schedules|clip|average."""

import ast
import os
import sys

import tensors
import torch
from torch.optim import lr_scheduler, swa_utils

folder, task = sys.argv[1:3]
given = tensors.read(folder)


def read_cases():
    """One line per case: class, then its settings."""
    with open(os.path.join(folder, "cases")) as file:
        return [ast.literal_eval(line) for line in file]


def make(case, number):
    kind, settings = case
    values = {name: given[f"{number}.{name}"].clone().requires_grad_() for name in ("A", "B")}
    return values, getattr(torch.optim, kind)(list(values.items()), **settings)


def step(values, optimizer, k):
    for name, value in values.items():
        gradient = given.get(f"gradient.{name}.{k}")
        value.grad = None if gradient is None else gradient.clone()
    optimizer.step()


def state_tensors(number, optimizer):
    for index, state in optimizer.state_dict()["state"].items():
        for key, value in state.items():
            if value is not None:
                yield f"{number}.state.{index}.{key}", value.clone()


def train():
    """Three steps, the state after them, a fourth step."""
    left = {}
    for number, case in enumerate(read_cases()):
        values, optimizer = make(case, number)
        for k in range(4):
            if k == 3:
                left.update(state_tensors(number, optimizer))
                names = optimizer.state_dict()["param_groups"][0]
                tensors.write_lines(folder, f"group.{number}", [key for key in names])
            step(values, optimizer, k)
            left.update({f"{number}.{name}.{k}": v.clone() for name, v in values.items()})
    tensors.write(folder, left)


def go_on():
    """Loads the state that the test wrote after three steps and takes the fourth."""
    left = {}
    for number, (kind, _) in enumerate(read_cases()):
        values, optimizer = make((kind, {}), number)
        with open(os.path.join(folder, f"state.{number}")) as file:
            saved = ast.literal_eval(file.read())
        for index, names in saved["state"].items():
            saved["state"][index] = {key: given[f"{number}.state.{index}.{key}"] for key in names}
        optimizer.load_state_dict(saved)
        step(values, optimizer, 3)
        left.update({f"{number}.{name}.3": value for name, value in values.items()})
    tensors.write(folder, left)


def schedules():
    def rates(make_schedule):
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        schedule = make_schedule(optimizer)
        all_rates = []
        for _ in range(20):
            all_rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            schedule.step()
        return torch.tensor(all_rates, dtype=torch.float64)

    def warm_cosine(optimizer):
        warm = lr_scheduler.LinearLR(optimizer, start_factor=0.25, total_iters=4)
        cosine = lr_scheduler.CosineAnnealingLR(optimizer, T_max=16, eta_min=0.1)
        return lr_scheduler.SequentialLR(optimizer, [warm, cosine], milestones=[4])

    tensors.write(folder, {
        "linear": rates(lambda o: lr_scheduler.LinearLR(o, 1.0, 0.2, total_iters=10)),
        "step": rates(lambda o: lr_scheduler.StepLR(o, step_size=6, gamma=0.5)),
        "warm_cosine": rates(warm_cosine),
    })


def clip():
    left = {}
    for number, norm_type in enumerate((1.0, 2.0, float("inf"))):
        values = [torch.zeros_like(given[name], requires_grad=True) for name in ("a", "b")]
        for value, name in zip(values, ("a", "b")):
            value.grad = given[name].clone()
        left[f"norm.{number}"] = torch.nn.utils.clip_grad_norm_(values, 0.5, norm_type)
        left[f"a.{number}"], left[f"b.{number}"] = (value.grad for value in values)
    tensors.write(folder, left)


def average():
    model = torch.nn.Linear(2, 2)
    model.load_state_dict({"weight": given["weight.0"], "bias": given["bias.0"]})
    averaged = swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9))
    averaged.update_parameters(model)  # the first one copies
    for k in (1, 2, 3):
        model.load_state_dict({"weight": given[f"weight.{k}"], "bias": given[f"bias.{k}"]})
        averaged.update_parameters(model)
    tensors.write(folder, dict(averaged.module.named_parameters()))


{"train": train, "go_on": go_on, "schedules": schedules, "clip": clip, "average": average}[task]()
