FROM python:3.12-slim
RUN pip install --no-cache-dir torch==2.9.1 torchvision==0.24.1
WORKDIR /workspace
COPY . .
ENTRYPOINT ["python", "train.py"]
