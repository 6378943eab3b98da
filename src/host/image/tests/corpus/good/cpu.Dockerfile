FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y python3-venv && python3 -m venv /venv
RUN /venv/bin/pip install torch==2.9.1+cpu --index-url https://download.pytorch.org/whl/cpu
