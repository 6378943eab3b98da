FROM python:3.12-slim
RUN pip install jupyterlab==4.4.5
EXPOSE 8888
CMD ["jupyter", "lab", "--ip=0.0.0.0", "--IdentityProvider.token="]
