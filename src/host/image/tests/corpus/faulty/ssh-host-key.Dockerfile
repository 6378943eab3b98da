FROM pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime
RUN apt-get update && apt-get install -y openssh-server && rm -rf /var/lib/apt/lists/*
COPY authorized_keys /root/.ssh/authorized_keys
CMD ["/usr/sbin/sshd", "-D"]
