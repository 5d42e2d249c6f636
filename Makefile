.PHONY: help demo check test stories faults golden fields deployments

help: ## List the targets
	@grep -E '^[a-z]+:.*##' Makefile | sed 's/:.*## /\t/'

demo: ## Install into .venv and import the sample deliveries
	python3 -m venv .venv
	.venv/bin/pip install -q -c constraints.txt -e '.[dev]'
	.venv/bin/recon demo

check: ## Format, lint, types, layers
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports

test: ## All tests
	.venv/bin/python -m pytest

stories: ## The long stories on a machine that is up: a real Prefect server, worker and deployments
	RECON_LONG=1 .venv/bin/python -m pytest tests/flows/e2e

faults: ## The slow fault suites: every cut of a connection, hundreds of soups, fuzzed requests; an hour or more
	RECON_TEST_FAULTS=all RECON_TEST_SOUPS=200 RECON_TEST_FUZZ=500 .venv/bin/python -m pytest \
		tests/extracts tests/faults tests/governance tests/inbox tests/push tests/reconcile tests/sandbox \
		tests/scale tests/schemas tests/service tests/stages tests/test_torture.py

golden: ## Rewrite the golden files of the reports; read the difference before you commit it
	RECON_GOLDEN=write .venv/bin/python -m pytest tests/report -q

fields: ## Rewrite the field reference and the header templates
	.venv/bin/python -m schemas.reference > docs/fields.md
	.venv/bin/python -m schemas.reference --templates data_samples/templates

deployments: ## Rewrite prefect.yaml from the table of deployments
	.venv/bin/python -m flows.deployments > prefect.yaml
