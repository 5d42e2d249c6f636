"""The rules of a run, read from a file; a file that cannot be used is refused with its line."""

from pathlib import Path

from connectors.errors import RulesError
from connectors.rules import rule_file_text
from flows.steps.reconcile.rule_file import read_rules_text
from flows.steps.reconcile.rule_values import RulesRefused
from flows.steps.reconcile.rules import Rules


def read_rules(path: Path | None) -> Rules:
    """The rules of a TOML file, or the default ones; raises RulesError naming file and line."""
    if path is None:
        return Rules()
    try:
        return read_rules_text(rule_file_text(path))
    except RulesRefused as refused:
        raise RulesError(f"{path}: {refused}") from refused
