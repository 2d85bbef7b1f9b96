# docker build -t compgen .                              for CPUs
# docker build -t compgen --build-arg INDEX=cu128 .      for GPUs, with CUDA 12.8's libraries
# docker run --rm -it [--gpus all] -v "$PWD/runs:/compgen/runs" compgen make quickstart
FROM python:3.12-slim
ARG INDEX=cpu
RUN apt-get update && apt-get install --yes --no-install-recommends g++ git make \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /compgen
COPY . .
RUN make setup TORCH="torch==2.13.0 torchaudio --extra-index-url https://download.pytorch.org/whl/$INDEX"
ENV PATH=/compgen/.venv/bin:$PATH
CMD ["bash"]
