FROM nvidia/cuda:11.8.0-devel-ubuntu22.04
RUN apt-get update && apt-get install -y python3-pip ninja-build
RUN pip3 install torch==2.9.1
RUN pip3 install --no-build-isolation flash-attn==2.8.3
