FROM nvidia/cuda:12.8.1-cudnn-devel-ubuntu22.04
ENV TORCH_CUDA_ARCH_LIST="8.0;9.0;10.0+PTX"
RUN apt-get update && apt-get install -y python3-pip git
RUN pip3 install torch==2.9.1 ninja
RUN pip3 install --no-build-isolation flash-attn==2.8.3
