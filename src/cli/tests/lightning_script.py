"""An ordinary Lightning script: DDP on two CPU ranks, whoever started them."""

import os

import torch

try:
    import lightning
except ImportError:
    import pytorch_lightning as lightning


class Line(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, _):
        return (self.layer(batch) - batch.sum(1, keepdim=True)).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


loader = torch.utils.data.DataLoader(torch.randn(32, 4, generator=torch.Generator().manual_seed(7)), batch_size=4)
trainer = lightning.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=1, logger=False, enable_progress_bar=False,
                            enable_checkpointing=False, enable_model_summary=False)
model = Line()
trainer.fit(model, loader)
weights = model.layer.weight.detach().sum().item()
os.write(1, f"lightning rank {trainer.global_rank} of {trainer.world_size} weights {weights:.6f}\n".encode())
