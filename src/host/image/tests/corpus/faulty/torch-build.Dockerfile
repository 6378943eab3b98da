# syntax=docker/dockerfile:1
FROM python:3.12-slim
WORKDIR /app
RUN pip install --no-cache-dir torch==2.9.1+cu124 --index-url https://download.pytorch.org/whl/cu124
COPY . .
CMD ["python", "train.py"]
