FROM pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime
RUN pip install --no-cache-dir transformers==4.48.0 accelerate wandb
COPY . /workspace
CMD python train.py
