FROM python:3.9-slim-bookworm
RUN pip install --no-cache-dir "torch>=2.9,<2.10" "torchvision>=0.24,<0.25"
