# Tontaube on a host with an NVIDIA GPU:
#   docker build -t tontaube .
#   docker run --gpus all -p 8000:8000 \
#     -v tontaube-models:/home/tontaube/.cache/huggingface -v tontaube-data:/data tontaube
# Without a GPU it speaks with the small bundle that it carries. Settings are TONTAUBE_ variables.
# scripts/check_image.py runs these steps where there is no Docker.
FROM nvidia/cuda:12.9.1-base-ubuntu24.04

ENV PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    PATH=/opt/venv/bin:$PATH

RUN apt-get update \
    && apt-get install --no-install-recommends --yes python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*

# The base image's own user has the number that Spaces run under; ours takes its place.
RUN userdel --remove ubuntu \
    && useradd --create-home --uid 1000 tontaube \
    && mkdir --parents /data /home/tontaube/.cache/huggingface \
    && chown --recursive tontaube:tontaube /data /home/tontaube

RUN python3 -m venv /opt/venv

WORKDIR /app
COPY requirements.txt ./
RUN pip install -r requirements.txt
COPY app.py LICENSE ./
COPY tontaube ./tontaube
COPY api ./api

# What the hub gave is kept where Spaces put it too, voices of users in /data.
ENV TONTAUBE_DATA_DIR=/data \
    TONTAUBE_HOST=0.0.0.0 \
    TONTAUBE_PORT=8000 \
    GRADIO_ANALYTICS_ENABLED=False
VOLUME ["/home/tontaube/.cache/huggingface", "/data"]
EXPOSE 8000
USER tontaube

# Ready means: it has spoken. Loading and fetching models may take long the first time.
HEALTHCHECK --interval=15s --timeout=5s --start-period=30m --retries=3 \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/ready', timeout=4)"]
CMD ["python", "app.py"]
