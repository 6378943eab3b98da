FROM python:3.10-alpine
RUN apk add --no-cache build-base && pip install torch==2.6.0
