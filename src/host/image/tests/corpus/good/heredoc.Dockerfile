# syntax=docker/dockerfile:1.7
FROM python:3.12-slim
RUN <<EOF
set -e
pip install torch==2.9.1 torchvision==0.24.1
rm -rf /root/.cache
EOF
COPY <<EOF /etc/motd
FROM here on: torch==1.0 and NVIDIA_VISIBLE_DEVICES=all are only words
EOF
