FROM python:3.11-slim
RUN pip install torch==2.6.0 torchvision==0.21.0
RUN pip install --no-cache-dir xformers transformers==4.48.0
