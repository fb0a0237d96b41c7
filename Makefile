# `make demo`, `make test` and `make sanitize` set up what they need by themselves.
.PHONY: demo test sanitize setup lint format clean

PYTHON := .venv/bin/python

setup:
	@vagrant/provision.sh

demo: setup
	.venv/bin/weft run labs/01-allreduce/scenario.yaml

test: setup
	@# Labs run alone: their clock is the wall's. All others share the cores.
	@status=0; \
	$(PYTHON) -m pytest -m "not mininet" --numprocesses auto || status=$$?; \
	$(PYTHON) -m pytest -m mininet || status=$$?; \
	exit $$status

sanitize: setup
	@.ci/sanitize

lint: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/clang-format --dry-run --Werror $$(git ls-files 'engine/*.cpp' 'engine/*.hpp')
	shellcheck vagrant/*.sh .ci/run .ci/sanitize

format: setup
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .
	.venv/bin/clang-format -i $$(git ls-files 'engine/*.cpp' 'engine/*.hpp')

clean:
	rm -rf build .venv .venv-shell .pytest_cache .mypy_cache .ruff_cache .hypothesis weft/engine/*.so
