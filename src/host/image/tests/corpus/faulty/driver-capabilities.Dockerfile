FROM python:3.12-slim
ENV NVIDIA_DRIVER_CAPABILITIES graphics,utility
RUN pip install torch==2.9.1
