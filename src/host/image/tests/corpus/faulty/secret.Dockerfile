FROM python:3.12-slim
ENV TOKENIZERS_PARALLELISM=false
ENV HF_TOKEN=hf_abcdefghijklmnop
RUN pip install torch==2.9.1 transformers==4.57.0
