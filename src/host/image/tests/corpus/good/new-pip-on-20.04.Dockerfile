FROM ubuntu:20.04
RUN apt-get update && apt-get install -y python3.9 python3-pip && ln -sf /usr/bin/python3.9 /usr/local/bin/python3
RUN python3 -m pip install --upgrade pip && python3 -m pip install torch==2.7.1
