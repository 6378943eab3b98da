FROM python:3.12-slim
RUN apt-get update && apt-get install -y --no-install-recommends openssh-server tini \
 && rm -rf /var/lib/apt/lists/* /etc/ssh/ssh_host_*
RUN --mount=type=secret,id=netrc,target=/root/.netrc pip install torch==2.9.1 jupyterlab==4.4.5
ENTRYPOINT ["tini", "--"]
CMD ["sh", "-c", "jupyter lab --ip=0.0.0.0 --IdentityProvider.token=$JUPYTER_TOKEN"]
