FROM python:3.11
RUN pip install --no-cache-dir \
      torch==2.6.0 \
      torchaudio==2.5.1 \
      soundfile
