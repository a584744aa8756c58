# The page and the API with the networks that ship, through ONNX Runtime and without TensorFlow, which would make the
# image 2.3 GB larger:
#
#   docker build -t connect4-distill .
#   docker run --rm -p 8765:8765 connect4-distill
#
# Networks of one's own, exported with `--formats onnx`: -v "$PWD/models:/home/distill/models:ro"

FROM python:3.11-slim AS wheel
WORKDIR /src
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY distill distill
COPY data/benchmark data/benchmark
COPY data/reference/validation data/reference/validation
COPY docs/benchmark.csv docs/benchmark.csv
COPY models/reference models/reference
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheel .

FROM python:3.11-slim
COPY requirements.lock /lock/
COPY --from=wheel /wheel /wheel
RUN pip install --no-cache-dir -c /lock/requirements.lock fastapi joblib numba numpy onnxruntime pydantic starlette uvicorn
RUN pip install --no-cache-dir --no-deps --no-index --find-links /wheel connect4-distill
RUN useradd --create-home distill
USER distill
WORKDIR /home/distill
EXPOSE 8765
CMD ["distill", "serve", "--host", "0.0.0.0"]
