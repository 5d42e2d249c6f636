PYTHON ?= .venv/bin/python

.PHONY: help demo check test long golden fields deployments pictures

help: ## List the targets
	@grep -E '^[a-z]+:.*##' Makefile | sed 's/:.*## /\t/'

demo: ## Install into .venv; import, push and reconcile the sample deliveries
	python3 -m venv .venv
	.venv/bin/pip install -q --no-compile -c constraints.txt -e '.[dev]'
	.venv/bin/recon demo

check: ## Format, lint, types, layers
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports

test: ## The tests of the gate: a slice of every suite
	$(PYTHON) -m pytest -n 2

long: ## All tests, with the long ones: every cut of a connection, hundreds of soups, the stories of a machine
	$(PYTHON) -m pytest --long -n 2

golden: ## Rewrite the golden files of the reports; read the difference before you commit it
	RECON_GOLDEN=write $(PYTHON) -m pytest tests/report -q

# A folder without any: what is shipped is about the documented records alone.
fields: export RECON_RECORDS = schemas
fields: ## Write what follows from field tables and reasons: migration, field reference, header templates
	$(PYTHON) -m connectors.postgres.migrations.revise follow the field tables
	$(PYTHON) -m ruff format -q connectors/postgres/migrations/versions
	$(PYTHON) -m schemas.derived.reference > docs/fields.md
	$(PYTHON) -m schemas.derived.reference --templates data_samples/templates

deployments: ## Rewrite prefect.yaml from the table of deployments
	$(PYTHON) -m flows.ops.deployments > prefect.yaml

pictures: ## Take the pictures in docs again, with chromium: of the demo's report, the desk and Prefect's pages
	chromium --headless --no-sandbox --hide-scrollbars --window-size=1280,1060 \
	  --screenshot=docs/images/reconciliation.png .recon/reports/reconciliation-1/report.html
	RECON_PICTURES=docs/images $(PYTHON) -m pytest --long -n 0 tests/desk/test_month.py tests/flows/e2e/test_runbook.py
