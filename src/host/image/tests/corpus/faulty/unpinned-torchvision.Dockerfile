FROM python:3.10-slim
ENV PIP_NO_CACHE_DIR=1
RUN pip install torch==2.4.1
RUN pip install torchvision timm==1.0.9
