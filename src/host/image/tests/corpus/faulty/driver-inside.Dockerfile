FROM ubuntu:22.04
RUN apt-get update && apt-get install -y python3-pip nvidia-utils-535 && rm -rf /var/lib/apt/lists/*
RUN pip3 install torch==2.6.0
