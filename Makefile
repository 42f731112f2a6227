# Two commands: `make check` installs policyeng and checks a sample workspace, `make test` runs the tests for every change.
# Both set up what they need and are quick the second time. `make check` needs Python alone. `make test-slow` runs the other
# tests, as CI does, `make thorough` has the tests try many more examples, `make docs` writes the pages of the policies and the picture,
# `make bench` measures it beside OPA and Conftest, `make bench-serving` its server under load, `make kubernetes-test` tries the webhook in a real kube-apiserver, `make container-test` performs the steps
# of the Containerfiles.
# Compiled modules are kept: the tests start some thousand processes.
unexport PYTHONDONTWRITEBYTECODE
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := check

PYTHON ?= $(shell for p in python3.14 python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
OPA_VERSION := v1.22.0
BIN := .venv/bin
OPA := .tools/bin/opa
CONFTEST_VERSION := v0.71.1
CONFTEST := .tools/bin/conftest
K6_VERSION := v1.8.1
K6 := .tools/bin/k6
CHECKOV_VERSION := 3.3.30
CHECKOV := .tools/checkov/bin/checkov
VALE_VERSION := v3.21.0
VALE := .tools/bin/vale
# The documents that Vale checks: all but the pages of which the style is still to be changed.
PROSE := README.md CONTRIBUTING.md SECURITY.md $(sort $(wildcard docs/*.md))
UV_VERSION := 0.13.9
PIP_AUDIT_VERSION := 2.10.1
CYCLONEDX_VERSION := 7.5.0
LOCKS := requirements.lock requirements-server.lock requirements-dev.lock
# Files that name container images.
IMAGES := deploy/container/Containerfile deploy/container/Containerfile.check deploy/ci/gitlab-ci.yml docs/recipes.md
SAMPLE := samples/workspaces/regulated.json
KUSTOMIZE_VERSION := v5.8.1
CERT_MANAGER_VERSION := v1.21.2
KUBERNETES_VERSION := $(shell sed -n 's|^\tk8s.io/kubernetes ||p' tests/kubernetes/apiserver/go.mod)
# The make of macOS is too old for it; what two steps print may then be mixed.
OUTPUT_SYNC := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
say = @echo "== $(1)"

.PHONY: check test test-slow attack thorough packages setup setup-tests lint prose rego python conformance collections compiled wheel container-test kubernetes-test docs bench bench-compiler bench-serving lock schema schema-lock \
	advisories sbom pin-images clean

check: setup
	$(call say,checking the sample workspace $(SAMPLE))
	@$(BIN)/policyeng check $(SAMPLE) --as-of 2026-06-01T00:00:00Z || [ $$? -eq 1 ]
	$(call say,done: check your own with $(BIN)/policyeng check snapshot.json)

# What takes one core each runs two at a time; pytest then has both.
test: packages setup-tests
	@$(MAKE) --no-print-directory --jobs=2 $(OUTPUT_SYNC) lint rego
	@$(MAKE) --no-print-directory python SELECTED='-m "not slow" --junitxml=junit.xml'
	$(call say,the quick tests passed: make test-slow runs the others)

# What tries everything of a kind, or drives other programs for long.
test-slow: packages setup-tests
	@$(MAKE) --no-print-directory --jobs=2 $(OUTPUT_SYNC) VERIFY=--verify conformance wheel prose
	@$(MAKE) --no-print-directory python SELECTED='-m slow --junitxml=junit-slow.xml'
	$(call say,the slow tests passed)

# The browser, the database and the Java that tests start, on Debian and its kin; elsewhere CONTRIBUTING.md names them.
packages:
	@command -v apt-get >/dev/null || { echo "== the tests start Chromium, PostgreSQL and a Java runtime of 17 or newer"; exit 0; }; \
	missing=; \
	command -v chromium >/dev/null || missing="$$missing chromium"; \
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$$missing postgresql"; \
	command -v systemd-analyze >/dev/null || missing="$$missing systemd"; \
	command -v java >/dev/null || missing="$$missing default-jre-headless"; \
	[ -z "$$missing" ] || { echo "== installing$$missing"; sudo=$$([ "$$(id -u)" -eq 0 ] || echo sudo); \
		$$sudo apt-get update --quiet=2 && $$sudo env DEBIAN_FRONTEND=noninteractive \
			apt-get install --yes --quiet=2 --no-install-recommends $$missing >/dev/null; }

# What attacks found once, in less than two minutes; all of it is part of the tests above. Collecting all tests would take a minute more.
attack: setup-tests
	$(call say,reproductions of attacks)
	@$(BIN)/python -m pytest -q -n auto --dist worksteal -m attack $$(grep -l 'mark\.attack' tests/test_*.py)

# Before a release, or after a change to what draws: half an hour.
thorough: export THOROUGH_TESTS := 1
thorough: python

setup: .venv/setup.stamp
setup-tests: .venv/tests.stamp

# The package is built with the setuptools that the lock of the tests has the hash of.
.venv/setup.stamp: requirements.lock pyproject.toml
	@[ -n "$(PYTHON)" ] || { echo "policyeng needs Python 3.11 or newer: install it, for example with 'apt install python3 python3-venv'" >&2; exit 1; }
	$(call say,creating .venv with $$($(PYTHON) --version))
	@$(PYTHON) -m venv .venv || { echo "the venv module is missing: install it, for example with 'apt install python3-venv'" >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements.lock \
		-r <(awk '/^[a-z]/ { kept = /^setuptools==/ } kept' requirements-dev.lock)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

.venv/tests.stamp: .venv/setup.stamp requirements-dev.lock
	$(call say,installing what the tests need (some minutes the first time))
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

$(OPA):
	@command -v go >/dev/null || { echo "the tests run OPA, which is built with Go: install it from https://go.dev/dl" >&2; exit 1; }
	$(call say,building OPA $(OPA_VERSION) into .tools)
	@GOBIN=$(CURDIR)/.tools/bin go install github.com/open-policy-agent/opa@$(OPA_VERSION)

$(CONFTEST):
	@command -v go >/dev/null || { echo "this runs Conftest, which is built with Go: install it from https://go.dev/dl" >&2; exit 1; }
	$(call say,building Conftest $(CONFTEST_VERSION) into .tools)
	@GOBIN=$(CURDIR)/.tools/bin go install github.com/open-policy-agent/conftest@$(CONFTEST_VERSION)

$(VALE):
	@command -v go >/dev/null || { echo "the prose is checked by Vale, which is built with Go: install it from https://go.dev/dl" >&2; exit 1; }
	$(call say,building Vale $(VALE_VERSION) into .tools)
	@GOBIN=$(CURDIR)/.tools/bin go install github.com/vale-cli/vale/v3/cmd/vale@$(VALE_VERSION)

$(K6):
	@command -v go >/dev/null || { echo "the load comes from k6, which is built with Go: install it from https://go.dev/dl" >&2; exit 1; }
	$(call say,building k6 $(K6_VERSION) into .tools (some minutes))
	@GOBIN=$(CURDIR)/.tools/bin go install go.k6.io/k6@$(K6_VERSION)

# For the scale of its start only: without it the page has a line less.
$(CHECKOV):
	$(call say,installing Checkov $(CHECKOV_VERSION) into .tools)
	@$(BIN)/python -m venv .tools/checkov
	@.tools/checkov/bin/python -m pip install --quiet --disable-pip-version-check checkov==$(CHECKOV_VERSION)

lint: setup-tests
	$(call say,lint: ruff and mypy and import layers and links)
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-cache >/dev/null || $(BIN)/lint-imports --no-cache
	@printed=$$($(BIN)/mkdocs build --strict 2>&1) || { echo "$$printed" >&2; exit 1; }

prose: setup-tests $(VALE)
	$(call say,prose: README and docs and help texts)
	@$(VALE) --output line $(PROSE)
	@$(BIN)/python tools/help_text.py | $(VALE) --output line --ext .md

rego: setup-tests $(OPA)
	$(call say,policies: opa fmt and check and test and build)
	@$(OPA) fmt --fail --list policies
	@$(OPA) check --strict --bundle policies
	@$(OPA) test --bundle policies
	@$(BIN)/policyeng test --coverage
	@$(OPA) build --bundle policies --output .tools/bundle.tar.gz

python: setup-tests $(OPA) $(CONFTEST)
	$(call say,pytest)
	@$(BIN)/python -m pytest -q -n auto --dist worksteal $(SELECTED)

conformance: setup-tests $(OPA)
	$(call say,the cases of OPA on the Rego engine)
	@$(BIN)/python tools/run_conformance.py --opa $(OPA) $(VERIFY) \
		--cases "$$(go env GOMODCACHE)/github.com/open-policy-agent/opa@$(OPA_VERSION)/v1/test/cases/testdata"

# Fetches nothing: DIR is a copy of a collection of Rego policies.
collections: setup-tests
	$(call say,a collection of Rego on the Rego engine and on OPA)
	@$(BIN)/python -m tools.run_collections "$(DIR)" --opa $(OPA)

# For a release: it fails unless every supported version of Python is installed, for which policies are compiled.
compiled: setup
	$(call say,a wheel in dist/ with the policies compiled for every supported Python)
	@POLICYENG_COMPILE_FOR=every $(BIN)/python -m pip wheel --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir dist .

wheel: setup-tests
	$(call say,a wheel in an empty environment)
	@bash tests/wheel.sh $(BIN)/python

container-test: setup-tests
	$(call say,the steps of the Containerfiles below a folder (some minutes))
	@$(BIN)/python -m tests.container

.tools/bin/etcd: tests/kubernetes/etcd/go.mod
	$(call say,building etcd into .tools (a minute))
	@go -C tests/kubernetes/etcd build -trimpath -ldflags "-s -w" -o $(CURDIR)/$@ .

.tools/bin/kube-apiserver: tests/kubernetes/apiserver/go.mod
	$(call say,building kube-apiserver $(KUBERNETES_VERSION) into .tools (some minutes))
	@go -C tests/kubernetes/apiserver build -trimpath -o $(CURDIR)/$@ \
		-ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$(KUBERNETES_VERSION)" .

.tools/bin/kustomize:
	$(call say,building kustomize $(KUSTOMIZE_VERSION) into .tools)
	@GOBIN=$(CURDIR)/.tools/bin go install sigs.k8s.io/kustomize/kustomize/v5@$(KUSTOMIZE_VERSION)

# Outside of `make test`, because building the API server takes minutes; the transcript is part of the documentation.
kubernetes-test: setup-tests .tools/bin/etcd .tools/bin/kube-apiserver .tools/bin/kustomize
	$(call say,the webhook in a real kube-apiserver $(KUBERNETES_VERSION))
	@$(BIN)/python -m tests.kubernetes --etcd .tools/bin/etcd --apiserver .tools/bin/kube-apiserver \
		--kustomize .tools/bin/kustomize --transcript docs/kubernetes-transcript.txt --cert-manager \
		"$$(go mod download -json github.com/cert-manager/cert-manager@$(CERT_MANAGER_VERSION) \
			| sed -n 's/^\t"Dir": "\(.*\)",$$/\1/p')/deploy/crds"

# Run from the checkout, so that the pages link to the files of their policies.
docs: setup
	$(call say,the pages of the policies and the picture of a report and the options of a plain check)
	@$(BIN)/policyeng policies list --format markdown --output docs/policies
	@$(BIN)/policyeng frameworks list --format markdown --output docs/frameworks
	@$(BIN)/python -m tests.report_picture
	@$(BIN)/python -m tools.plain_options

# BENCH_FAST=1 tries it in two minutes, REMARK="..." puts a sentence on the page; measure on a machine with nothing else to do.
bench: setup-tests $(OPA) $(CONFTEST)
	$(call say,benchmarks: policyeng beside OPA and Conftest (a quarter of an hour))
	@$(MAKE) --no-print-directory $(CHECKOV) || echo "Checkov cannot be installed; its start is not measured" >&2
	@$(BIN)/python -m benchmarks --conftest-version $(CONFTEST_VERSION) --remark "$(REMARK)" \
		$$([ -x $(CHECKOV) ] && echo --checkov $(CHECKOV))
	$(call say,done: see docs/benchmarks.md)

# As above; BENCH_FAST=1 takes a minute.
bench-compiler: setup-tests $(OPA)
	$(call say,benchmarks: the Rego compiler beside opa bench (five minutes))
	@$(BIN)/python -m benchmarks.compiler --opa $(OPA)
	$(call say,done: see docs/benchmarks-compiler.md)

bench-serving: setup-tests $(OPA) $(K6)
	$(call say,benchmarks: policyeng serve beside the server of OPA (five minutes))
	@$(BIN)/python -m pytest -q tests/load_generator.py
	@$(BIN)/python -m benchmarks.serving --opa $(OPA) --k6 $(K6) --remark "$(REMARK)"
	$(call say,done: see docs/benchmarks-serving.md)

lock: .venv/setup.stamp
	@$(BIN)/python -m pip install --quiet uv==$(UV_VERSION)
	@for extras in "" server,audit,azure,postgresql,rego dev; do $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header \
		--python-version 3.11 --no-emit-index-url $${extras:+--extra $${extras//,/ --extra }} \
		--output-file requirements$${extras:+-$${extras%%,*}}.lock pyproject.toml; done

# What resource types have, from the SDK packages of the vendor; a slow test holds that they give the same.
schema: .venv/setup.stamp
	$(call say,the schema of resource types (a minute))
	@$(BIN)/python tools/build_schema.py

# After a change of `tools/schema/sources.csv`.
schema-lock: .venv/tests.stamp
	@for name in current older; do $(BIN)/python tools/build_schema.py --requirements $$name | $(BIN)/uv pip compile --quiet --no-deps \
		--only-binary :all: --generate-hashes --no-header --no-emit-index-url --python-version 3.11 \
		--output-file tools/schema/$$name.lock -; done

# Tools of a release, each in an environment of its own.
.tools/pip-audit/$(PIP_AUDIT_VERSION): .venv/setup.stamp
	@$(BIN)/python -m venv --clear .tools/pip-audit
	@.tools/pip-audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit==$(PIP_AUDIT_VERSION)
	@touch $@

.tools/cyclonedx/$(CYCLONEDX_VERSION): .venv/setup.stamp
	@$(BIN)/python -m venv --clear .tools/cyclonedx
	@.tools/cyclonedx/bin/python -m pip install --quiet --disable-pip-version-check cyclonedx-bom==$(CYCLONEDX_VERSION)
	@touch $@

# Fails for a known vulnerability, and where the service does not answer or does not know a package.
advisories: .tools/pip-audit/$(PIP_AUDIT_VERSION)
	$(call say,known vulnerabilities of what is locked)
	@for lock in $(LOCKS); do echo "$$lock"; .tools/pip-audit/bin/pip-audit --strict --require-hashes --disable-pip \
		--progress-spinner off --requirement $$lock \
		|| { echo "$$lock: vulnerable, or not audited: see above; the advisories come from the service of pip-audit" >&2; exit 1; }; done

# CycloneDX 1.6 in JSON, validated; the same for the same lock.
sbom: .tools/cyclonedx/$(CYCLONEDX_VERSION)
	$(call say,bills of materials in dist/)
	@mkdir -p dist
	@for lock in requirements.lock requirements-server.lock; do \
		PYTHONWARNINGS=ignore .tools/cyclonedx/bin/cyclonedx-py requirements --pyproject pyproject.toml --validate --output-reproducible \
			--spec-version 1.6 --output-format JSON --output-file dist/policyeng-$${lock%.lock}.cdx.json $$lock; done
	@ls dist/*.cdx.json

# Needs Docker and a registry; review the change before it is committed.
pin-images:
	@command -v docker >/dev/null || { echo "this asks a registry with docker: install it from https://docs.docker.com" >&2; exit 1; }
	@for image in $$(sed -nE 's/^(FROM|  image:) ([a-z]+:[0-9][^ @]*).*/\2/p' $(IMAGES) | sort -u); do \
		digest=$$(docker buildx imagetools inspect "$$image" --format '{{.Manifest.Digest}}'); \
		[[ "$$digest" =~ ^sha256:[0-9a-f]{64}$$ ]] || { echo "$$image: no digest, but: $$digest" >&2; exit 1; }; \
		echo "$$image@$$digest"; \
		sed -i -E "s|^(FROM\|  image:) $$image(@[^ ]*)?( .*)?\$$|\1 $$image@$$digest\3|" $(IMAGES); done

clean:
	rm -rf .venv .tools build dist *.egg-info
