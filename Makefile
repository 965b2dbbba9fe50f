# Everything runs through here; a bare `make` prints this help. Caches live outside the tree, except .venv and build/.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
# noreset: else codes that end a colour stand before the next line, though nothing has one; style.color=never does not stop them.
MVNW := MAVEN_OPTS="$$MAVEN_OPTS -Djansi.noreset=true" ./mvnw -q -B
export PYTHONDONTWRITEBYTECODE = # empty: to compile all modules in each process is a tenth of the time of unit tests
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/storm-operator
export MYPY_CACHE_DIR ?= $(CACHE)/mypy
SEARCH := operator/storm_operator/core/placement/search
PLUGIN_JAR := operator/storm-plugin/target/storm-plugin.jar
WORKLOADS_JAR := examples/workloads/target/workloads.jar
ALERTS_FIRE := tests/functional/monitoring/test_alerts_fire.py
CRASHES := $(addprefix tests/pipeline/,test_crashes.py test_crashes_of_ingest.py)
LONG_SCENARIOS := $(addprefix tests/scenario/,test_constant_load.py test_saturation.py test_numbers_follow_load.py \
  test_simulated_loop.py test_priority.py test_learned_loop.py test_groups_take_turns.py test_proposals_in_waves.py)
java_sources = $(shell find $(1) -name '*.java' -o -name pom.xml 2>/dev/null)

##@ Start here
.PHONY: help demo demo-k8s pipeline-demo test
help: ## Print this help
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: prerequisites venv jars ## Real Storm, Storm's scheduler against storm-operator, a report in build/demo (DEMO_MINUTES=6)
	$(BIN)/storm-operator demo --output build/demo $(if $(DEMO_MINUTES),--minutes $(DEMO_MINUTES))

demo-k8s: setup ## The same through Helm and kubectl on a real Kubernetes node made here (root, Go, `make packages`)
	PYTHONPATH=tests:benchmarks $(BIN)/python tests/demo_on_kubernetes.py $(if $(DEMO_MINUTES),--minutes $(DEMO_MINUTES))

PIPELINE_DEMO := build/pipeline-demo
PIPELINE_MASTER ?= local[*]
pipeline-demo: venv spark-jars ## A simulated hour recorded, cleaned, learned from, and gone by: tables and a report in build/pipeline-demo (5 to 12 minutes)
	rm -rf $(PIPELINE_DEMO)
	@echo "== an hour that is recorded: loads step up to six times as high, the same each ten minutes, and a supervisor dies;"
	@echo "   settings are tight on purpose (short CPU limits, a plain forecast), so that plans cost much and there is something to learn"
	$(BIN)/storm-operator simulate examples/simulations/pipeline-demo.yaml --history $(PIPELINE_DEMO)/bronze
	@echo "== what was recorded goes through ingest, traffic, profile, forecast, evaluate and report: each is named as it begins,"
	@echo "   and may take minutes till it says what it has found"
	$(BIN)/storm-pipeline run $(PIPELINE_DEMO) --master '$(PIPELINE_MASTER)' ingest traffic profile \
	  "forecast --cycle 600 --bin 10 --theta 50 --valid-days 3650 --publish $(PIPELINE_DEMO)/profile.json" evaluate \
	  "report --output $(PIPELINE_DEMO)/report"
	@echo "== half an hour later, nobody is moved: CPU limits by the present load alone, and by what was learned"
	$(BIN)/storm-operator simulate examples/simulations/pipeline-demo-later.yaml --profile $(PIPELINE_DEMO)/profile.json

TESTS := test-unit test-slow test-scenario test-plugin test-pipeline-crashes test-pipeline test-functional test-alerts
test: setup $(filter-out $(APART),$(TESTS)) ## All tests on this machine, set-up included (APART=test-pipeline: without those)

##@ Tests and checks
.PHONY: test-unit test-slow test-scenario test-plugin test-pipeline-crashes test-pipeline test-functional test-alerts test-e2e lint types verify manifests
test-unit: venv ## Pure Python tests of one part at a time, a minute
	$(BIN)/pytest tests/unit -m "not slow" -q -n auto --dist worksteal

test-slow: venv ## Those of them that take long for the sizes they are about, or wait for time-outs; half a minute
	$(BIN)/pytest tests/unit -m slow -q -n auto --dist worksteal

test-scenario: venv ## Pure Python tests of many parts at once: loop, simulator, searches of clusters, commands; a minute
	$(BIN)/pytest tests/scenario -q -n auto --dist worksteal $(LONG_SCENARIOS:%=--ignore %)

test-plugin: ## JUnit tests of the Storm plugin and the workloads
	$(MVNW) -f operator/storm-plugin/pom.xml verify
	$(MVNW) -f examples/workloads/pom.xml verify

test-pipeline-crashes: venv spark-jars ## The data pipeline's jobs cut short in each of their writes; two files at a time, each with a Spark session
	$(BIN)/pytest $(CRASHES) -q -n 2 --dist loadfile --durations 10

test-pipeline: venv spark-jars ## All else of the data pipeline, likewise
	$(BIN)/pytest tests/pipeline $(CRASHES:%=--ignore %) -q -n 2 --dist loadfile --no-loadscope-reorder --durations 10 --timeout 900  # a call into Spark that is cut short spoils its session for all later tests

test-functional: setup ## Against real Storm, Kubernetes and Prometheus on this machine, two files at a time; and long scenarios
	$(BIN)/pytest tests/functional $(LONG_SCENARIOS) -q -n 2 --dist loadfile --no-loadscope-reorder --reruns 1 --durations 10 --timeout 900 --ignore $(ALERTS_FIRE)  # a test that waits in vain is to say for what

test-alerts: setup ## Each alert fired on a real cluster by causing its fault; not beside what takes CPU, since alerts go by time
	$(BIN)/pytest $(ALERTS_FIRE) -q -n 0 --reruns 1

test-e2e: setup ## Two real Kubernetes nodes, with images of our own; needs root, Go and `make packages`
	$(BIN)/pytest tests/e2e -q -n 2 --dist loadfile --no-loadscope-reorder --maxfail 2 --reruns 1 --durations 10 --timeout 900 -rs  # a node that is gone fails all that follow, each after its waits

lint: .venv/installed ## ruff, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: .venv/installed ## mypy --strict
	$(BIN)/mypy

verify: .venv/installed ## What is generated or copied is what it was made from
	$(BIN)/python .ci/verify.py
	$(BIN)/python .ci/crd_reference.py --check
	$(BIN)/python .ci/metric_reference.py --check
	$(BIN)/python .ci/policy_reference.py --check
	$(BIN)/python .ci/history_reference.py --check
	$(BIN)/python .ci/openapi.py --check
	diff -r crds charts/storm-operator/crds
	diff -r monitoring/rules charts/storm-operator/rules
	PYTHONPATH=monitoring $(BIN)/python -m dashboards --check
	diff -r monitoring/dashboards/json charts/storm-operator/dashboards

manifests: venv ## Make what is made or copied: reference pages, dashboards, the chart's copies of CRDs, rules and dashboards
	$(BIN)/python .ci/crd_reference.py
	$(BIN)/python .ci/metric_reference.py
	$(BIN)/python .ci/policy_reference.py
	$(BIN)/python .ci/history_reference.py
	$(BIN)/python .ci/openapi.py
	cp crds/*.yaml charts/storm-operator/crds/
	cp monitoring/rules/*.yml charts/storm-operator/rules/
	PYTHONPATH=monitoring $(BIN)/python -m dashboards
	mkdir -p charts/storm-operator/dashboards && cp monitoring/dashboards/json/*.json charts/storm-operator/dashboards/

.PHONY: golden golden-record
golden: venv spark-jars ## The tables that the pipeline makes of the recorded real run, made anew; read the change before you keep it
	PYTHONPATH=tests $(BIN)/python tests/golden_tables.py

golden-record: setup ## Another recording of a real run, for `make golden`
	PYTHONPATH=tests:benchmarks $(BIN)/python tests/record_history.py

##@ Measure
.PHONY: bench bench-plan bench-plan-all bench-hook bench-apply bench-isolation bench-separation bench-idle \
  bench-many bench-placement bench-optimum bench-simulator bench-calibration bench-growth bench-first-tuple \
  bench-scrape bench-limit-period bench-shared-cores bench-reaction bench-league bench-restarts bench-forecasts bench-profile bench-profile-real bench-tune bench-papers \
  bench-real \
  bench-dashboards bench-pipeline bench-prediction bench-page page-pictures
bench: PICTURES := --pictures docs/images/bench
bench: bench-plan-all bench-optimum bench-papers bench-reaction bench-real ## How good the plans are, all of it: tables, and pictures into docs/images (hours)

bench-hook: setup ## Cost and error of the metrics hook at saturation; the last line is JSON
	$(BIN)/python benchmarks/hook/bench_hook.py

bench-apply: setup ## The three ways to apply a plan: pause, failed tuples, time to running
	$(BIN)/python benchmarks/apply_methods.py

bench-isolation: setup ## Two topologies on one supervisor, one turns greedy: with enforcement and without
	$(BIN)/python benchmarks/isolation.py

bench-separation: setup ## Stateful and stateless workers apart or together: what each costs and saves
	$(BIN)/python benchmarks/separation.py

bench-limit-period: venv ## How long a real thread waits behind its CPU limit, by the limit's period (LIMIT_OPTIONS); the last line is JSON
	$(BIN)/python benchmarks/limit_period.py $(LIMIT_OPTIONS)

bench-shared-cores: venv ## How much longer a real thread takes because others use its cores; the last line is JSON (SHARED_OPTIONS)
	$(BIN)/python benchmarks/shared_cores.py $(SHARED_OPTIONS)

bench-scrape: venv ## A scrape of an agent with 200 executors and 5,000 pairs: time and bytes (SCRAPE_OPTIONS)
	$(BIN)/python benchmarks/scrape.py $(SCRAPE_OPTIONS)

bench-idle: setup ## CPU of operator and agents at rest
	$(BIN)/python benchmarks/idle_cost.py

bench-many: setup ## Hundreds of StormTopologies at once, against a handler that does nothing else
	PYTHONPATH=tests:benchmarks $(BIN)/python benchmarks/many_resources.py

bench-plan: venv ## Plan quality and time beside KaHIP, METIS and Storm's ResourceAwareScheduler (EXECUTORS=10000 SUPERVISORS=1000, PLAN_OPTIONS)
	PYTHONPATH=benchmarks $(BIN)/python -m plan.bench_plan --executors $(or $(EXECUTORS),10000) \
	  --supervisors $(or $(SUPERVISORS),1000) $(PLAN_OPTIONS)

bench-plan-all: venv ## The same from 10 to 100,000 executors, into build/bench-plan and docs/images
	PYTHONPATH=benchmarks $(BIN)/python -m plan.bench_plan --all $(PLAN_OPTIONS)
bench-growth: setup ## 250 to 1,000 StormTopologies with as many played pods: memory, API calls, writes at rest
	PYTHONPATH=tests:benchmarks $(BIN)/python benchmarks/growth.py

bench-first-tuple: setup ## From kubectl apply to the first tuple, against storm jar by hand, on a real node (as root)
	PYTHONPATH=tests:benchmarks $(BIN)/python benchmarks/first_tuple.py

bench-placement: venv ## How long placement takes
	$(BIN)/python benchmarks/placement.py

bench-reaction: venv ## Step, sine, random, spike, noise: CPU over and under, failed tuples, plans; an hour of noise (REACTION_OPTIONS); the last line is JSON
	OMP_NUM_THREADS=1 PYTHONPATH=benchmarks $(BIN)/python -m reaction.bench_reaction $(PICTURES) $(REACTION_OPTIONS)

bench-league: venv ## All policies by name on the same workloads, simulated (LEAGUE_OPTIONS); the last line is JSON
	OMP_NUM_THREADS=1 PYTHONPATH=benchmarks $(BIN)/python -m league $(LEAGUE_OPTIONS)

bench-forecasts: venv ## Ways to forecast load on recorded series: error and CPU missing; the last line is JSON
	OMP_NUM_THREADS=1 PYTHONPATH=benchmarks $(BIN)/python benchmarks/forecasts.py

bench-profile: venv ## A learned profile against Liu's regression on a daily load with spikes (PROFILE_OPTIONS); the last line is JSON
	OMP_NUM_THREADS=1 PYTHONPATH=benchmarks $(BIN)/python -m profile_gain.bench_profile $(PROFILE_OPTIONS)

bench-profile-real: setup ## The same on compressed days of a real cluster, half an hour for each load (PROFILE_OPTIONS); the last line is JSON
	OMP_NUM_THREADS=1 PYTHONPATH=tests:benchmarks $(BIN)/python -m profile_gain.real_days $(PROFILE_OPTIONS)

bench-tune: venv spark-jars ## 1,000 settings replayed on an hour of 100 executors; one Spark executor against two (TUNE_OPTIONS)
	OMP_NUM_THREADS=1 PYTHONPATH=benchmarks $(BIN)/python benchmarks/tune_speed.py $(TUNE_OPTIONS)
bench-pipeline: venv spark-jars ## Rows per second of the pipeline beside DuckDB and Polars (ROWS=10000000, PIPELINE_OPTIONS); the last line is JSON
	PYTHONPATH=benchmarks $(BIN)/python -m pipeline.bench_pipeline --rows $(or $(ROWS),10000000) $(PIPELINE_OPTIONS)

bench-optimum: venv ## How far adaptive is from the proven optimum on small clusters (OPTIMUM_OPTIONS); the last line is JSON
	$(BIN)/python benchmarks/optimum.py $(OPTIMUM_OPTIONS)

bench-restarts: venv ## Worker restarts after a change of load, against a plan from scratch (RESTARTS_OPTIONS); the last line is JSON
	PYTHONPATH=benchmarks $(BIN)/python benchmarks/restarts.py $(RESTARTS_OPTIONS)

bench-prediction: venv ## How far predicted latencies are off, on a real cluster's recorded figures and simulated; the last line is JSON
	PYTHONPATH=benchmarks $(BIN)/python benchmarks/latency_prediction.py $(PREDICTION_OPTIONS)

bench-simulator: venv ## How much faster than real time 10,000 executors are simulated; the last line is JSON
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/simulator_speed.py

bench-papers: venv ## Each paper's experiment on the simulator, its figures beside ours (PAPERS_OPTIONS); the last line is JSON
	OMP_NUM_THREADS=1 PYTHONPATH=benchmarks $(BIN)/python -m papers.bench_papers $(PICTURES) $(PAPERS_OPTIONS)

bench-calibration: setup ## Simulated against real, same topologies and placements: the error; the last line is JSON
	PYTHONPATH=tests $(BIN)/python benchmarks/calibration.py

bench-real: setup ## Our schedulers against Storm's own on a real local cluster, taking turns (REAL_OPTIONS); the last line is JSON
	PYTHONPATH=tests $(BIN)/python benchmarks/real_cluster.py $(PICTURES) $(REAL_OPTIONS)

bench-dashboards: venv ## How long panels take on a day of a 1,000-executor cluster (DASHBOARD_OPTIONS); the last line is JSON
	PYTHONPATH=monitoring:benchmarks $(BIN)/python benchmarks/dashboard_speed.py $(DASHBOARD_OPTIONS)

##@ Dashboards
.PHONY: dashboards-preview dashboards-pictures grafana-schema
dashboards-preview: setup ## A real cluster under load, every panel drawn from its Prometheus: build/dashboards/index.html
	PYTHONPATH=tests:monitoring:benchmarks $(BIN)/python tests/dashboards_of_a_run.py

dashboards-pictures: setup ## The same, and a picture of each dashboard into docs/images/dashboards (needs chromium)
	PYTHONPATH=tests:monitoring:benchmarks $(BIN)/python tests/dashboards_of_a_run.py --pictures docs/images/dashboards

grafana-schema: ## Grafana's own types of a dashboard as a JSON schema, by npm; tests hold the dashboards against it
	cd monitoring/dashboards/grafana_schema && npm install --silent --no-audit --no-fund --no-package-lock && npm run -s schema

bench-page: venv ## The operator's page in headless Chromium: first view, updates, memory; the last line is JSON
	PYTHONPATH=tests $(BIN)/python benchmarks/page.py

page-pictures: setup ## A real cluster under load: screenshots of the operator's page into docs/images/page (needs chromium)
	PYTHONPATH=tests:monitoring:benchmarks $(BIN)/python tests/dashboards_of_a_run.py --page docs/images/page

##@ Set-up
.PHONY: setup prerequisites packages venv jars spark-jars kubernetes node lock clean
setup: prerequisites venv jars spark-jars ## Everything that tests need; the demo needs no jars of Spark

prerequisites: ## Check for Python, Java and the rest; each missing one with the command that installs it
	@$(PYTHON) .ci/prerequisites.py

packages: ## Debian packages for tests that need more than Python, Java, Maven and Go (as root)
	@[ "$$(grep -v '^#' .ci/apt-packages.txt | xargs dpkg-query -W -f '$${Status}\n' 2>/dev/null | grep -c ' installed$$')" -ge \
	  "$$(grep -vc '^#' .ci/apt-packages.txt)" ] || \
	  (apt-get update -q -o Acquire::Retries=3 && grep -v '^#' .ci/apt-packages.txt | \
   DEBIAN_FRONTEND=noninteractive xargs apt-get install -q -y --no-install-recommends -o Acquire::Retries=3)

UV := uv==0.13.9
# uv knows nothing of pip's settings: where pip has an index of its own, so has uv.
UV_PIP = UV_DEFAULT_INDEX="$${UV_DEFAULT_INDEX:-$$($(BIN)/pip config get global.index-url 2>/dev/null)}" $(BIN)/uv pip
venv: .venv/compiled
# Checked here too: a .venv that an old Python has made stays that one's, whichever makes it anew.
.venv/installed: requirements.lock pyproject.toml
	@$(PYTHON) .ci/prerequisites.py python
	$(PYTHON) -m venv .venv
	@echo "Python packages into .venv: a minute or two, 2.5 GB"
	$(BIN)/pip install -q $(UV)
	$(UV_PIP) install -q -r requirements.lock
	$(UV_PIP) install -q --no-deps -e .
	@touch $@
# Else each operator that a test starts would do it, for as long as the test waits for something else. What another tree
# has compiled serves this one as well; where it was of other sources, `compiled.py` removes it. Where NUMBA_CACHE_DIR is
# set nothing is kept beside the sources.
MACHINE_CODE := $(CACHE)/machine-code.tar
.venv/compiled: .venv/installed $(wildcard $(SEARCH)/*.py)
	@mkdir -p $(CACHE) $(SEARCH)/__pycache__
	@tar -C $(SEARCH)/__pycache__ -xf $(MACHINE_CODE) 2>/dev/null || true
	$(BIN)/python -m storm_operator.machine_code
	@cd $(SEARCH)/__pycache__ && ! ls *.nb? >/dev/null 2>&1 || \
	  (tar -cf $(MACHINE_CODE).$$$$ machine-code.sources *.nb? && mv $(MACHINE_CODE).$$$$ $(MACHINE_CODE))
	@touch $@

jars: $(PLUGIN_JAR) $(WORKLOADS_JAR) ## Build the Storm plugin and the example topologies
$(PLUGIN_JAR): $(call java_sources,operator/storm-plugin/src operator/storm-plugin/pom.xml)
	$(MVNW) -f operator/storm-plugin/pom.xml package -DskipTests
	@touch $@
$(WORKLOADS_JAR): $(call java_sources,examples/workloads/src examples/workloads/pom.xml)
	$(MVNW) -f examples/workloads/pom.xml package -DskipTests
	@touch $@

spark-jars: venv ## Delta and S3 for Spark, from Maven into the user's cache
	@$(BIN)/storm-pipeline jars

kubernetes: .venv/installed ## What functional tests need of Kubernetes, from source (Go); else they build it themselves
	cd tests && ../$(BIN)/python -m kube_cluster build
	cd tests && ../$(BIN)/python -m kube_cluster build kwok kubeconform

node: .venv/installed ## The rest that end-to-end tests need, and the project's images (root, Go, `make packages`)
	cd tests && ../$(BIN)/python -m kube_cluster build --node
	cd tests && ../$(BIN)/python -m kube_cluster images

lock: venv ## Pin all versions anew
	$(UV_PIP) compile -q pyproject.toml --all-extras --group dev --python-version 3.11 --universal --no-header -o requirements.lock --no-emit-index-url

clean: ## Remove what was built (caches outside the tree stay)
	rm -rf build .venv operator/storm-plugin/target examples/workloads/target operator/*.egg-info
