.PHONY: check quickstart lock

check: ## lint, format, types and tests: the same as CI
	./pipelines/test.sh

quickstart: ## from a fresh checkout to a graded network in minutes
	./pipelines/quickstart.sh

lock: ## rebuild requirements.lock from pyproject.toml, keeping versions that still fit (FLAGS=--upgrade takes the newest)
	.venv/bin/python -m uv pip compile --quiet --universal --python-version 3.11 --all-extras $(FLAGS) \
	  --custom-compile-command "make lock (used as constraints: pip install -c requirements.lock -e .[dev])" \
	  pyproject.toml --output-file requirements.lock
