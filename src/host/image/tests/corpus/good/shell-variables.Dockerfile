FROM python:3.11-slim
RUN set -eux; \
    V=2.6.0; W=cu124; \
    pip install --no-cache-dir torch==$V+$W --extra-index-url https://download.pytorch.org/whl/$W
