FROM pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime
RUN pip install torch==2.9.1 torchvision==0.24.1
