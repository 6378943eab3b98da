# escape=`
FROM python:3.12-slim
RUN pip install `
    # the pair of the table
    torch==2.9.1 `
    torchvision==0.24.1
ONBUILD COPY . /app
HEALTHCHECK --interval=30s CMD python -c "import torch"
