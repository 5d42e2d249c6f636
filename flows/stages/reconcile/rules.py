"""The rules of a run, read from a file; an unusable file is refused with the line at fault."""

import hashlib
import json
from pathlib import Path

import psycopg

from connectors.errors import RulesError
from connectors.files.disk.rule_files import rule_file_text
from connectors.postgres.runs.reconciliations import rules_text_of, runs_by_rules
from flows.stages.reconcile.report_files import TOTALS
from flows.stages.workspace import Workspace
from flows.steps.rules.file import read_rules_text
from flows.steps.rules.rules import Rules
from flows.steps.rules.values import RulesRefused


def read_rules(path: Path | None) -> Rules:
    """The rules of a TOML file, or the default ones; raises RulesError naming file and line."""
    if path is None:
        return Rules()
    try:
        return read_rules_text(rule_file_text(path))
    except RulesRefused as refused:
        raise RulesError(f"{path}: {refused}") from refused


def rules_of(workspace: Workspace, connection: psycopg.Connection, hash_: str) -> Rules | None:
    """The rules with this hash, from the runs that used them; None if no run has them.

    Runs of an earlier version have them only in their totals.
    """
    text = text_of(workspace, connection, hash_)
    if text is None:
        return None
    try:
        return read_rules_text(text, kept=True)
    except RulesRefused:
        return None


def text_of(workspace: Workspace, connection: psycopg.Connection, hash_: str) -> str | None:
    """The canonical text with this hash, from the database or a report; None if neither has it."""
    text = rules_text_of(connection, hash_)
    if text is not None:
        return text
    for folder in runs_by_rules(connection, hash_):
        candidate = _text_in_totals(workspace.settings.reports / folder / TOTALS)
        if (
            candidate is not None
            and hashlib.sha256(candidate.encode(errors="surrogatepass")).hexdigest() == hash_
        ):
            return candidate
    return None


def _text_in_totals(path: Path) -> str | None:
    try:
        text = json.loads(path.read_bytes())["cover"]["rules_text"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return text if isinstance(text, str) else None
