FROM python:3.11-slim
RUN pip install torch==2.6.0+cu124 torchvision==0.21.0+cu126 --extra-index-url https://download.pytorch.org/whl/
