FROM nvidia/cuda:12.8.1-devel-ubuntu22.04 AS build
RUN apt-get update && apt-get install -y python3-pip ninja-build
RUN pip3 install torch==2.9.1
COPY csrc /src
RUN cd /src && python3 setup.py bdist_wheel

FROM python:3.10-slim
COPY --from=build /src/dist /dist
RUN pip install torch==2.9.1 /dist/*.whl
