# `make demo` and `make test` set up what they need by themselves.
.PHONY: demo test setup lint format clean

PYTHON := .venv/bin/python

setup:
	@vagrant/provision.sh

demo: setup
	.venv/bin/weft run labs/01-allreduce/scenario.yaml

test: setup
	$(PYTHON) -m pytest

lint: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/clang-format --dry-run --Werror engine/src/*.cpp engine/src/*.hpp
	shellcheck vagrant/*.sh .ci/run

format: setup
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .
	.venv/bin/clang-format -i engine/src/*.cpp engine/src/*.hpp

clean:
	rm -rf build .venv .venv-shell .pytest_cache .mypy_cache .ruff_cache .hypothesis engine/*.so
