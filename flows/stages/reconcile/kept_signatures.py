"""Signatures that are also kept beside the reports they belong to.

A database restored to a time before a signature does not know it, but the report's folder does. The
next run of the scope says so on page one instead of continuing as if nobody had signed.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import psycopg

from connectors.errors import ReconError
from connectors.files.disk.atomic import write_file
from connectors.files.text.evidence import MISSING
from connectors.postgres.runs.reconciliations import Reconciliation
from connectors.postgres.runs.signatures import Signature, signatures_of, signed_reports
from flows.stages.reconcile.scope import is_one_scope
from flows.stages.workspace import Workspace
from schemas.accounts import SELF_DECLARED

log = logging.getLogger("recon.sign")

FOLDER = "reconciliation-"
SIGNATURES = "signatures.json"
"""Not part of the report: signed files cannot contain their own signatures."""


def folder_of(number: int) -> str:
    """The folder of a run's files, below the reports."""
    return f"{FOLDER}{number}"


def keep_signatures(
    workspace: Workspace, run: Reconciliation, signatures: Iterable[Signature]
) -> None:
    """Write a run's signatures, which are in the database already, into its folder."""
    path = workspace.settings.reports / run.folder / SIGNATURES
    text = json.dumps(_document(run, signatures), indent=1, ensure_ascii=False) + "\n"
    try:
        write_file(path, text.encode())
    except ReconError as error:
        log.warning("The signature is in the database, and not beside the report: %s", error)


def _document(run: Reconciliation, signatures: Iterable[Signature]) -> dict[str, Any]:
    return {
        "reconciliation": run.id,
        "scope": run.scope,
        "as_of": run.as_of.isoformat(),
        "signatures": [
            {
                "role": one.role.value,
                "by": one.by,
                "at": one.at.isoformat(),
                "report_hash": one.report_hash,
                "accepted_changes": one.accepted_changes,
                "account": one.person or SELF_DECLARED,
            }
            for one in signatures
        ],
    }


def altered_signatures(
    workspace: Workspace, connection: psycopg.Connection, run: Reconciliation
) -> str | None:
    """What is wrong with the signatures beside a run's report; None if they match the ledger.

    Runs of an earlier version may have none.
    """
    signatures = signatures_of(connection, run.id).values()
    try:
        kept: Any = json.loads((workspace.settings.reports / run.folder / SIGNATURES).read_bytes())
    except FileNotFoundError:
        return MISSING if signatures and run.version is not None else None
    except (OSError, ValueError, RecursionError):
        return "it cannot be read"
    earlier = [replace(one, at=one.kept_at or one.at) for one in signatures]
    expected = (_in_order(_document(run, of)) for of in (signatures, earlier))
    if isinstance(kept, dict) and _in_order(kept) in expected:
        return None
    names = " and ".join(f"{one.role.value} by {one.by}" for one in signatures) or "none"
    return f"changed since, or the ledger was: it has {names}"


def _in_order(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document in one form, whoever signed first and whichever version wrote it."""
    signed = document.get("signatures")
    texts = map(_in_one_form, signed) if isinstance(signed, list) else ()
    return {**document, "signatures": sorted(texts)}


def _in_one_form(signature: Any) -> str:
    """A signature in the form of this version.

    An earlier version knew no accounts, so every name was self-declared; it wrote the time of the
    signature's row in the server's zone.
    """
    if not isinstance(signature, dict):
        return json.dumps(signature)
    form = {"account": SELF_DECLARED, **signature}
    with suppress(KeyError, TypeError, ValueError, OverflowError):
        form["at"] = datetime.fromisoformat(form["at"]).astimezone(UTC).isoformat()
    return json.dumps(form, sort_keys=True)


def lost_signatures(
    workspace: Workspace, connection: psycopg.Connection, scope: str
) -> Iterator[str]:
    """Signatures in report folders of a scope that the database does not know, in words."""
    known = signed_reports(connection)
    for path in sorted(workspace.settings.reports.glob(f"{FOLDER}*/{SIGNATURES}"), key=str):
        try:
            kept: Any = json.loads(path.read_bytes())
            if not is_one_scope(kept["scope"], scope):
                continue
            signed = [(one["role"], one["by"], one["at"][:10], one["report_hash"])
                      for one in kept["signatures"]]  # fmt: skip
            as_of = str(kept["as_of"])
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            yield f"{path.parent.name}/{SIGNATURES} cannot be read."
            continue
        for role, by, day, hash_ in signed:
            if (hash_, role, by) not in known:
                yield (
                    f"The report in {path.parent.name}, as of {as_of}, was {role} by {by} on "
                    f"{day}, and this database does not know it: it was restored to before "
                    "that, or is another one. Nothing here is held against that report."
                )
