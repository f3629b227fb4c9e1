# Everything a person or CI runs. `make help` lists it. Only Python 3.11+ and Java 17+ must be there.
PYTHON ?= python3
VENV := .venv
ORCHESTRATORS := .venv-orchestrators
OBJECT_STORE := .venv-s3
BIN := $(VENV)/bin
export GROUPLEDGER_JARS ?= $(CURDIR)/.jars
unexport PYTHONPATH  # what is run and tested is this tree's package, whatever the shell's says
unexport PYTHONDONTWRITEBYTECODE  # tests start hundreds of processes: each would compile every package that it imports

.DEFAULT_GOAL := help
.PHONY: help ready setup demo docs test check check-types check-form bench bench-job parity properties frozen mutants machine faults fuzz storm sameness prove prove-clients prove-answers live-truth sparks long cluster lock clean

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

ready: $(VENV)/.installed $(GROUPLEDGER_JARS)/.ready  # nothing compiled: the demonstration needs no compiled kernel

setup: $(VENV)/.installed  ## Install Python packages (.venv) and jars (.jars); compile; once
	@$(MAKE) --silent --no-print-directory --jobs 2 ready $(VENV)/.rehearsed

demo: ready  ## The main job on real Kafka data, with a summary to read
	@$(BIN)/groupledger demo

docs: $(VENV)/.installed  ## The documentation as a site in build/site: reference written from the code, a broken link fails; no network
	@$(BIN)/python -m website
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict
	@echo "build/site/index.html; to search in it: $(BIN)/python -m http.server --directory build/site"

test: setup check  ## Every check and test but the long ones: first what needs no JVM, on all cores, then Spark, in two sessions
	@$(BIN)/python -m pytest -m "not spark and not long and not live and not cluster" --numprocesses auto --dist worksteal \
	  --ignore tests/test_tidy.py --ignore tests/test_structure.py
	@$(BIN)/python -m groupledger.engine.jars broker >/dev/null
	@$(BIN)/python -m pytest -m "spark and not long and not live and not cluster" --numprocesses 2 --dist loadfile --no-loadscope-reorder --durations=10

long: setup  ## The tests that `make test` leaves out since they take long, most with Spark (about 45 minutes)
	@$(BIN)/python -m pytest -m long

check: setup  ## Format, lint, types, layers, tidiness
	@$(MAKE) --silent --no-print-directory --jobs 2 --output-sync=target check-types check-form

check-types:
	@$(BIN)/mypy $(wildcard src jobs tests benchmarks examples website)

check-form:
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python -m pytest -q tests/test_tidy.py tests/test_structure.py

parity: setup  ## Kafka's own assignors beside ours, on 20,000 new groups of each kind (needs a JDK; about 15 minutes)
	@$(BIN)/python -m tests.oracle.parity --groups 20000 --examples 1000
	@$(BIN)/python -m tests.oracle.validation --groups 20000

properties: setup  ## What every assignor promises, on 10,000 drawn groups for each; least moves, on 5,000; what-ifs, on 2,600; all others, on 500 (about 45 minutes)
	@GROUPLEDGER_EXAMPLES=10000 $(BIN)/python -m pytest -q tests/core/assignors/test_properties.py
	@GROUPLEDGER_EXAMPLES=5000 $(BIN)/python -m pytest -q tests/core/step/test_least_moves.py
	@GROUPLEDGER_EXAMPLES=2600 $(BIN)/python -m pytest -q tests/answers/test_what_if_three_ways.py
	@GROUPLEDGER_EXAMPLES=500 $(BIN)/python -m pytest -q tests/core/assignors tests/core/step tests/core/segments tests/core/lines \
	  tests/core/wire/test_codec.py tests/engine/test_classic_columns.py tests/engine/test_fold_slices.py \
	  --ignore=tests/core/assignors/test_properties.py --ignore=tests/core/step/test_least_moves.py

machine: setup  ## Random histories of groups, held against what must hold: 5,000 by rounds, 5,000 by a clock, 5,000 of KIP-848, 5,000 of KIP-1071 (about 40 minutes)
	@GROUPLEDGER_MACHINE_RUNS=5000 GROUPLEDGER_CLOCK_RUNS=5000 $(BIN)/python -m pytest -q tests/core/protocol/test_machine.py \
	  tests/core/protocol/test_timed_histories.py tests/core/protocol/test_consumer_timed.py \
	  tests/core/protocol/test_consumer_machine.py \
	  tests/core/protocol/test_streams_machine.py

frozen: setup  ## What commands, notebook cells, pages and 8,200 simulated histories show, against stored digests (some minutes)
	@$(BIN)/python -m tests.frozen.outputs
	@$(BIN)/python -m tests.frozen.settlements

faults: setup  ## Kill, fill, tear and lock out ingest and assign at every boundary; nothing lost, nothing doubled (needs a JDK)
	@$(BIN)/python -m tests.faults

fuzz: setup  ## 100,000 broken records through decoder and fold, 5,000 through Spark; 2,000 buckets of broken facts assigned: none harms another group (about 45 minutes)
	@mkdir -p build/checked  # kernels that check bounds, apart from those that do not
	@XDG_CACHE_HOME=$(CURDIR)/build/checked TMPDIR=$(CURDIR)/build/checked NUMBA_BOUNDSCHECK=1 GROUPLEDGER_KERNELS=compiled \
	  $(BIN)/python -m tests.fuzz --records 0 --buckets 2000
	@$(BIN)/python -m tests.fuzz --records 100000 --spark 5000

storm: setup  ## Many writers of one local ledger, killed at random, and a reader; then the ledger a quiet one has (45 minutes at most)
	@$(BIN)/python -m tests.storm

sameness: setup  ## Order, partitions, planning, hash seeds and poison change no digest (needs a JDK; about 10 minutes)
	@$(BIN)/python -m tests.faults --only others
	@$(BIN)/python -m tests.faults --only poison

prove: setup  ## Real clients on a real Kafka broker; their assignors; pages in Chromium; Airflow, Dagster; S3; every Spark (needs a JDK and npm; as root it installs Chromium; half an hour)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement tests/live/requirements.lock
	@$(BIN)/python -m groupledger.engine.jars broker broker-kafka3 streams >/dev/null
	@test -x $(ORCHESTRATORS)/bin/airflow || $(PYTHON) -m venv $(ORCHESTRATORS)
	@$(ORCHESTRATORS)/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement tests/orchestrators/requirements.lock
	@test -x $(OBJECT_STORE)/bin/moto_server || $(PYTHON) -m venv $(OBJECT_STORE)
	@$(OBJECT_STORE)/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement tests/object_store/requirements.lock
	@npm install --silent --no-save --prefix build/axe axe-core@4.14.1
	@$(BIN)/python -m tests.browser.chromium 2>/dev/null || { apt-get update && apt-get install --yes --no-install-recommends chromium; } >/dev/null || true
	@$(BIN)/python -m tests.browser.chromium
	@$(MAKE) --no-print-directory --jobs 2 --keep-going --output-sync=line prove-clients prove-answers

prove-clients:  # clients wait most of the time, so several groups play at once
	@$(BIN)/python -m pytest -q -m live --numprocesses 3 --dist loadgroup --durations=10 tests/live tests/browser tests/orchestrators tests/object_store

prove-answers:  # beside them, and after them in the queue for a processor
	@nice $(BIN)/python -m tests.oracle.libraries --groups 2000
	@nice $(BIN)/python -m tests.sparks

live-truth: setup  ## A day of real clients on brokers of Kafka 4.4, 4.2 and 4.0, and what the answers say of it against what was true (needs a JDK; about 20 minutes)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement tests/live/requirements.lock
	@$(BIN)/python -m groupledger.engine.jars broker broker-kafka40 broker-kafka42 connect streams >/dev/null
	@$(BIN)/python -m tests.live.truth build/live-truth
	@$(BIN)/python -m tests.live.truth.report build/live-truth

sparks: setup  ## The demonstration on Spark 4.0, 4.1 and 4.2: same facts and digests (about 10 minutes)
	@$(BIN)/python -m tests.sparks

cluster: setup  ## The demonstration on a standalone cluster and through Spark Connect: same digests (about 10 minutes)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement tests/cluster/requirements.lock
	@$(BIN)/python -m pytest -q -m cluster tests/cluster

bench-job: setup  ## The assign job on many generated groups, against a plain Spark copy, alone on the machine
	@$(BIN)/python -m benchmarks.assign_job crowd 100000 5
	@$(BIN)/python -m benchmarks.assign_job skewed 1000 3
	@$(BIN)/python -m benchmarks.assign_process 100000 3
	@$(BIN)/python -m benchmarks.assign_many 100000 1000000

bench: setup bench-job  ## Measure against floors and peers, alone on the machine
	@$(BIN)/python -m benchmarks.small_job
	@$(BIN)/python -m benchmarks.fold_job
	@$(BIN)/python -m benchmarks.giant_group
	@$(BIN)/python -m benchmarks.fleet_job
	@$(BIN)/python -m benchmarks.history
	@rm -rf build/large-ledger && $(BIN)/python -m benchmarks.large_ledger build/large-ledger
	@$(BIN)/python -m benchmarks.answers build/large-ledger group-01234 --fleet
	@$(BIN)/python -m benchmarks.scheduled_ingest
	@$(BIN)/python -m benchmarks.segments
	@$(BIN)/python -m benchmarks.cluster_log
	@$(BIN)/python -m benchmarks.assignors

mutants: setup  ## Change PART (assignors, protocol, wire, custom) in 500 small ways; tests must see 90 % (an hour at most)
	@$(BIN)/python -m tests.mutants --part $(or $(PART),assignors)

lock: setup  ## Write requirements.lock and the digests of the jars anew
	@$(BIN)/pip install --quiet --disable-pip-version-check 'uv>=0.5'
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url \
	  --no-emit-find-links --no-annotate --extra dev --extra docs --output-file requirements.lock pyproject.toml
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url \
	  --no-emit-find-links --no-annotate --output-file tests/live/requirements.lock tests/live/requirements.in
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url \
	  --no-emit-find-links --no-annotate --output-file tests/cluster/requirements.lock tests/cluster/requirements.in
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url \
	  --no-emit-find-links --no-annotate --output-file tests/orchestrators/requirements.lock tests/orchestrators/requirements.in
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url \
	  --no-emit-find-links --no-annotate --output-file tests/object_store/requirements.lock tests/object_store/requirements.in
	@for spark in tests/sparks/*.in; do $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header \
	  --no-emit-index-url --no-emit-find-links --no-annotate --no-deps --output-file $${spark%.in}.lock $$spark || exit; done
	@$(BIN)/python -m groupledger.engine.jars --pin

clean:  ## Remove everything the other targets made
	@rm -rf $(VENV) $(ORCHESTRATORS) $(OBJECT_STORE) .venv-spark-* .jars .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist spark-warehouse

$(VENV)/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "$(PYTHON) is not Python 3.11 or newer: install one and name it, as in: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 2; }
	@PYTHONPATH=src $(PYTHON) -m groupledger.engine.java
	@echo "installing Python packages into $(VENV) (once)" >&2
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --require-hashes --requirement requirements.lock  # compiled when imported
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(GROUPLEDGER_JARS)/.ready: $(VENV)/.installed src/groupledger/engine/ivy.xml src/groupledger/engine/jars.sha256
	@$(BIN)/python -m groupledger.engine.jars delta >/dev/null
	@$(BIN)/python -m groupledger.engine.archive >/dev/null
	@touch $@

$(VENV)/.rehearsed: $(VENV)/.installed
	@$(BIN)/python -m groupledger.engine.kernel_warmup
	@touch $@
