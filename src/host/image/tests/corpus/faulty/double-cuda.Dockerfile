FROM nvidia/cuda:12.4.1-cudnn-devel-ubuntu22.04
RUN apt-get update && apt-get install -y python3-pip && rm -rf /var/lib/apt/lists/*
RUN python3 -m pip install torch==2.6.0 torchvision==0.21.0
COPY train.py /app/
