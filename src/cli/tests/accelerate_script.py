"""An ordinary Accelerate script."""

import os

import torch
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
torch.manual_seed(7)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.randn(32, 4, generator=torch.Generator().manual_seed(7)), batch_size=4)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for batch in loader:
    optimizer.zero_grad()
    accelerator.backward((model(batch) - batch.sum(1, keepdim=True)).pow(2).mean())
    optimizer.step()
weights = accelerator.unwrap_model(model).weight.detach().sum().item()
os.write(1, f"accelerate rank {accelerator.process_index} of {accelerator.num_processes} weights {weights:.6f}\n".encode())
accelerator.end_training()
