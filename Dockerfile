# kvguard's image. Nothing is published: build it, push it to your registry, and name it in the chart.
#
#   docker build -t REGISTRY/kvguard:VERSION --build-arg VERSION=… --build-arg REVISION="$(git rev-parse HEAD)" .
#
# BASE_IMAGE is any image with Python 3.11 or newer and pip; pin it by digest where you build for production.
ARG BASE_IMAGE=python:3.13-slim

FROM ${BASE_IMAGE} AS build
COPY requirements.lock /build/
RUN python3 -m pip install --no-cache-dir --no-compile --root-user-action=ignore --no-deps --require-hashes \
        --target /app -r /build/requirements.lock && \
    rm -rf /app/bin
COPY src/kvguard /app/kvguard
COPY deploy/kvguard /app/bin/
# The root is read-only where this runs: compiled now, or at every start. Sources do not change, so nothing checks them.
RUN python3 -m compileall -q --invalidation-mode unchecked-hash /app

FROM ${BASE_IMAGE}
ARG VERSION=dev
ARG REVISION=unknown
ARG CREATED=unknown
ARG BASE_IMAGE
LABEL org.opencontainers.image.title="kvguard" \
      org.opencontainers.image.description="Gate vLLM on the KV-cache capacity that it reports at start-up." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.base.name="${BASE_IMAGE}"
COPY --from=build /app /app
ENV PATH=/app/bin:$PATH \
    PYTHONPATH=/app \
    PYTHONSAFEPATH=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
# a number, so that runAsNonRoot can be checked
USER 65532:65532
EXPOSE 9400
ENTRYPOINT ["python3", "-m", "kvguard"]
CMD ["--help"]
