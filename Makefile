# Targets set up what they need by themselves: `make demo` what Weft needs, all others what its tests need, too.
.PHONY: demo test test-all test-changed test-lint test-gate test-fast test-slow test-labs bench-gate fuzz site sanitize generated stubs lint
.PHONY: setup setup-tests format clean performance wheel sdist

PYTHON := .venv/bin/python
# Tests start thousands of processes: modules are compiled once, also where the environment says not to keep bytecode.
PYTEST := PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(CURDIR)/build/pycache $(PYTHON) -m pytest

# Both do nothing, in half a second, where nothing is missing. `make setup PARTS="prometheus shell"`: see the script.
PARTS :=
setup:
	@vagrant/provision.sh $(PARTS)
setup-tests:
	@vagrant/provision.sh tests $(PARTS)

demo: setup
	.venv/bin/weft run labs/01-allreduce/scenario.yaml

# docs/testing.md says which tests each of these runs. `make test` has an eighth of the long ones, which the commit
# chooses; `make test-all` is for a night and a release.
test: setup-tests
	@MAKE="$(MAKE)" .ci/test commit/8
test-all: setup-tests
	@MAKE="$(MAKE)" .ci/test

# Each worker begins with a run of neighbours, so that a module's fixtures are made once.
SHARED := --numprocesses auto --dist worksteal
# A part of the long tests (tests/parts.py): `make test-slow PART=3/8`. Empty: all.
PART :=
PARTLY := $(if $(PART),--part=$(PART))

# The inner loop: `make test-fast` is what to run after every change.
test-lint: setup-tests
	$(PYTEST) tests/test_house.py $(SHARED)
test-fast: setup-tests
	$(PYTEST) -m "not mininet and not slow" --ignore tests/test_house.py $(SHARED)
# Counts of instructions and cache misses, compared with benchmarks/gate.json (docs/performance.md).
bench-gate test-gate: setup-tests
	$(PYTHON) benchmarks/bench_gate.py
# Next to the labs these have the lowest priority, so they may take several times as long as alone.
test-slow: setup-tests
	$(PYTEST) --timeout 900 -m "not mininet and slow" --ignore tests/test_house.py $(SHARED) $(PARTLY)
# Two labs at a time, each in namespaces of its own.
test-labs: setup-tests
	$(PYTEST) -m mininet --tx "2*popen//python=.ci/apart $(PYTHON)" --dist loadfile $(PARTLY)

# The fast tests that the change since BASE can reach; `make test-changed MARKS="not mininet"`: the slow ones, too.
BASE := main
MARKS := not mininet and not slow
test-changed: setup-tests
	@mkdir -p build
	@$(PYTHON) -m tests.reached $(BASE) >build/reached
	$(PYTEST) -m "$(MARKS)" $(SHARED) $$(cat build/reached)

# Long fuzzing of all targets, and flaps of planes (MINUTES each); make test has a short one. Findings are left in
# build/fuzz-TARGET.
MINUTES := 30
fuzz: setup-tests
	@status=0; \
	for target in frontend json p4runtime packets programs traces; do \
	  $(PYTHON) -m fuzz $$target --minutes $(MINUTES) --output build/fuzz-$$target || status=$$?; \
	done; \
	$(PYTHON) -m fuzz.plane_flaps --collectives 1000000 --minutes $(MINUTES) || status=$$?; \
	exit $$status

site: setup-tests
	$(PYTHON) -m sphinx -W --keep-going -q -c docs -b html . build/site
	@echo "build/site/docs/index.html"

sanitize: setup-tests
	@.ci/sanitize

lint: setup-tests
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/clang-format --dry-run --Werror $$(git ls-files 'engine/*.[ch]pp' 'verbs/*.[ch]pp')
	shellcheck vagrant/*.sh .ci/apart .ci/run .ci/sanitize .ci/test

format: setup-tests
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .
	.venv/bin/clang-format -i $$(git ls-files 'engine/*.[ch]pp' 'verbs/*.[ch]pp')

# docs/performance.md anew, from a run of its benchmarks: half an hour, on a machine that does nothing else. WEFT_OTHER
# names a checkout with a built engine to compare with, WEFT_HTSIM the consortium's simulator.
performance: setup-tests
	$(PYTHON) benchmarks/performance.py

# What is made from declarations, and kept in the repository for those who read it there. Tests compare it.
generated: setup-tests stubs
	.venv/bin/weft schema --markdown >docs/scenario.md
	.venv/bin/weft schema --results >docs/results-reference.md
	$(PYTHON) -m weft.wire
	$(PYTHON) -m weft.run.lint.page
	$(PYTHON) benchmarks/performance.py --render
	$(PYTHON) benchmarks/lab_durations.py --render
	$(PYTHON) benchmarks/papers_page.py
	$(PYTHON) benchmarks/decision_page.py
	$(PYTHON) benchmarks/fabric_reports.py

# The types of the native module, from its bindings.
stubs:
	$(PYTHON) engine/python/make_stub.py

# In build/dist. Wheels for other Pythons and other systems: .github/workflows/wheels.yml.
wheel: setup
	$(PYTHON) -m pip wheel --quiet --no-deps --wheel-dir build/dist .
sdist: setup
	$(PYTHON) setup.py --quiet sdist --dist-dir build/dist

clean:
	rm -rf build .venv .venv-shell .pytest_cache .mypy_cache .ruff_cache .hypothesis weft/engine/*.so weft/verbs/lib weft/verbs/include
