ARG CUDA=12.6.3
ARG FLAVOUR=base
FROM nvidia/cuda:${CUDA}-${FLAVOUR}-ubuntu22.04
ARG TORCH=2.9.1
ARG WHEEL=cu126
RUN apt-get update && apt-get install -y python3-pip
RUN pip3 install "torch==${TORCH}+${WHEEL}" "torchvision==0.24.1+${WHEEL}" --index-url https://download.pytorch.org/whl/${WHEEL}
