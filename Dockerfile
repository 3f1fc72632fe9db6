# One image for API, driver and worker; the command chooses. The compiler is part of the image
# because workers build kernels. (This image is not built by the project's tests.)
FROM python:3.11-slim-bookworm
RUN apt-get update \
 && apt-get install -y --no-install-recommends g++ make \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /app
ARG TORCH_INDEX=
COPY pyproject.toml constraints.txt README.md LICENSE ./
RUN pip install --no-cache-dir ${TORCH_INDEX:+--index-url $TORCH_INDEX} "$(grep '^torch==' constraints.txt)"
COPY kernel_gen kernel_gen
COPY cost_models cost_models
COPY db db
COPY tuner tuner
COPY service service
COPY graph_autofusion graph_autofusion
RUN pip install --no-cache-dir --constraint constraints.txt '.[server]' \
 && useradd --create-home gaf \
 && install --directory --owner gaf --group gaf --mode 700 /home/gaf/keys
USER gaf
EXPOSE 8400
ENTRYPOINT ["gaf"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8400"]
