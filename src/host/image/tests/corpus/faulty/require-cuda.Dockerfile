FROM python:3.12-slim
ENV NVIDIA_REQUIRE_CUDA=cuda>=12.8
RUN pip install torch==2.9.1
