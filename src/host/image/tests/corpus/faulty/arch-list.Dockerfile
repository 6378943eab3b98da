FROM nvidia/cuda:13.0.1-devel-ubuntu22.04
ARG TORCH_CUDA_ARCH_LIST="6.1;7.0;8.0;9.0"
RUN apt-get update && apt-get install -y python3-pip git
RUN pip3 install torch==2.11.0 --index-url https://download.pytorch.org/whl/cu130
COPY csrc /src
RUN cd /src && python3 setup.py install
