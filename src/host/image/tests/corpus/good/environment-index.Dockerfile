FROM python:3.11-slim
ENV PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cu124 PIP_NO_CACHE_DIR=1
RUN pip install torch==2.6.0+cu124 torchvision==0.21.0+cu124
