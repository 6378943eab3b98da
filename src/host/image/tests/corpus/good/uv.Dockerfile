FROM ubuntu:24.04
COPY --from=ghcr.io/astral-sh/uv:0.8.3 /uv /usr/local/bin/uv
RUN uv venv --python 3.12 /opt/venv
ENV VIRTUAL_ENV=/opt/venv PATH=/opt/venv/bin:$PATH
RUN uv pip install torch==2.9.1 torchvision==0.24.1
