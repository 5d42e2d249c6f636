"""Five database roles, from the tables: `python -m schemas.guards.roles | psql ...` grants them.

recon_loader      receives, stages and checks; writes no target
recon_merger      also applies, pushes, undoes and reconciles; a worker connects as this
recon_reader      reads results and the ledger; no secret, nor a delivered row of a record with one
recon_controller  also decides about breaks and signs; loads nothing
recon_desk        also vouches for people whom a provider or a proxy has identified

Only the owner of the schema writes to the audit trail, and to what it tells of. Everybody else uses
the functions of `schemas.guards.trail_functions`, which stamp who and when.

The roles are groups: a user who logs in is made a member of one. The schema belongs to whoever
migrates it, so run this as that user, and again after every upgrade, which creates views again
without grants.
"""

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping

from schemas.derived.sql_names import (
    CONTROLLER,
    DESK,
    LOADER,
    MERGER,
    READER,
    SCHEMA,
    SHOWN_SCHEMA,
    TARGET_NAMES,
    staged_name,
    table_columns,
)
from schemas.derived.views import SHOWN, VIEWS, quoted
from schemas.guards.batch_states import OF_MERGER
from schemas.guards.decisions import DECIDED, SIGNED
from schemas.guards.leases import LEASES_OF
from schemas.guards.shown_rows import shown_rows
from schemas.guards.tenants import policies
from schemas.guards.trail_functions import FUNCTIONS_OF, SAVED, TURN
from schemas.guards.trail_rules import APPEND_ONLY
from schemas.kinds import stored_names
from schemas.ledger import LEDGER
from schemas.tables import EXTRACTS

OWNER = "owner"
LOCK_WAIT = "10s"
"""How long granting waits for a table, since everybody behind it waits as well."""

ADDED_TO = {
    "push_epoch": LOADER, "push_seal": MERGER, "push_restore": MERGER,
    "earlier_send": MERGER, "secret_constant": LOADER,
}  # fmt: skip
"""Tables that nobody changes, with the least role that adds to them: what tells a restored copy,
earlier states of sends, and secrets of profiles."""
TRAIL = (
    *(name for name in APPEND_ONLY if name not in ADDED_TO), TURN, "lease", "account",
    "acceptance_limit", "login", "look", "job", "subscription", "report_mail",
)  # fmt: skip
"""Tables that only functions of the owner write."""
_CALLED_BY: Mapping[tuple[str, ...], tuple[str, ...]] = {
    (LOADER,): (
        *("add_event", "lock_corrections", "take_job", "end_job", "job_ordered_by"),
        # A role that only reads holds nothing, so it blocks nobody.
        *("keep_batch", "keep_receive", "keep_job"),
    ),
    (MERGER,): (
        *("next_reconciliation", "conclude", "accept_by_rules", "claim_mail", "mail_sent"),
        *("keep_epoch", "keep_push"),
    ),
    (CONTROLLER,): (
        *("decide", "sign", "propose_rule", "approve_rule", "withdraw_rule"),
        *("order_job", "order_again", "keep_decision"),
    ),
    (DESK,): ("vouch",),
    (MERGER, CONTROLLER): ("took_over", "keep_scope"),
    (LOADER, CONTROLLER): ("renew_lease", "drop_lease"),
    (LOADER, READER): (
        *("chain_waiting", "end_holder", "altered_rights", "job_lives", "sees_job"),
        # A hash tells only how many rows it covers, of batches that the asker sees.
        "ledger_digests",
        # A draft has no effect by itself; only writing it down may be refused.
        "draft",
        # People show a token or a key, so what they may do does not depend on this role.
        *("acting_as", "acting_name", "has_accounts", "sees_scope", "sees_all", "seen_tenants"),
        *("seen_batches", "seen_runs", "seen_rules", "login_salt", "log_in", "refused", "log_out"),
        *("keep_account", "keep_subscription", "set_password", "choose_show_as", "keep_limit"),
        *("refuse_interested", "look_at"),
    ),
}
MAY_CALL = {name: roles for roles, names in _CALLED_BY.items() for name in names}
"""Roles that may call a function of the trail or of leases; nobody may call the others."""
ENTERED = ("batch", "extract")
"""Tables a loader adds to and changes but never deletes from: another row would get the number."""
LOADED = (*ENTERED, "receipt", "outcome", "note")
"""Tables that a loader writes besides the staged rows."""
_COLUMNS = table_columns()
_STAGED_NAMES = tuple(map(staged_name, EXTRACTS.values()))
OF_OWNER = {"account": ("salt", "verifier", "pepper"), "login": ("token_hash",)}
"""Columns that only the owner's functions read."""
WITH_ROWS = OF_OWNER | {
    "before_image": ("image",),
    "send": ("echo",),
    "earlier_send": ("echo",),
    "secret_constant": ("value", "salt"),
}
"""Columns of the ledger that hold whole records or keys, secrets included."""


def statements() -> Iterator[str]:
    """The statements in order; each may be run again."""
    yield (
        f"DO $$ BEGIN IF to_regnamespace('{SCHEMA}') IS NULL THEN RAISE EXCEPTION 'The schema "
        f"{SCHEMA} is not there yet. Run `recon status` as its owner, and this once more.'; "
        "END IF; END $$"
    )
    for role in (LOADER, MERGER, READER, CONTROLLER, DESK):
        yield (
            f"DO $$ BEGIN CREATE ROLE {role} NOLOGIN; "
            "EXCEPTION WHEN duplicate_object THEN NULL; END $$"
        )
        # Take back what an earlier version granted and this one does not.
        yield f"REVOKE ALL ON ALL TABLES IN SCHEMA {SCHEMA} FROM {role}"
        yield f"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {SCHEMA} FROM {role}"
        yield f"GRANT USAGE ON SCHEMA {SCHEMA} TO {role}"
    for wider, role in ((LOADER, MERGER), (READER, CONTROLLER), (CONTROLLER, DESK)):
        # Roles belong to the server: if another database's owner created them, only that one may.
        yield (
            f"DO $$ BEGIN IF NOT pg_has_role('{role}', '{wider}', 'MEMBER') THEN "
            f"GRANT {wider} TO {role}; END IF; END $$"
        )
    yield f"GRANT SELECT ON ALL TABLES IN SCHEMA {SCHEMA} TO {LOADER}"
    for name, columns in OF_OWNER.items():
        yield f"REVOKE ALL ON {SCHEMA}.{name} FROM {LOADER}"
        yield _read(name, _COLUMNS[name], columns, LOADER)
    loaded = (*LOADED, *_STAGED_NAMES)
    yield _write(LOADER, loaded)
    yield f"REVOKE DELETE ON {_tables(ENTERED)} FROM {LOADER}"
    # Without fresh statistics the planner takes a million staged rows for a handful.
    yield _maintain(loaded)
    for head in (*FUNCTIONS_OF, *LEASES_OF):
        for role in MAY_CALL.get(head.partition("(")[0], ()):
            yield f"GRANT EXECUTE ON FUNCTION {SCHEMA}.{head} TO {role}"
    yield _write(MERGER, (*TARGET_NAMES, *_merged()))
    for name, role in ADDED_TO.items():
        yield f"GRANT INSERT ON {_tables((name,))} TO {role}"
    # Policies come before rights to read, since a view that was created again shows everything.
    yield from policies()
    yield f"GRANT SELECT ON {_tables((SHOWN,))} TO {READER}"
    # Owned by the schema's owner, whoever grants, since each upgrade creates its views again.
    yield (
        f"DO $$ DECLARE owner text := (SELECT nspowner::regrole FROM pg_namespace "
        f"WHERE nspname = '{SCHEMA}'); BEGIN "
        f"EXECUTE 'CREATE SCHEMA IF NOT EXISTS {SHOWN_SCHEMA} AUTHORIZATION ' || owner; "
        f"EXECUTE 'ALTER SCHEMA {SHOWN_SCHEMA} OWNER TO ' || owner; END $$"
    )
    yield f"GRANT USAGE ON SCHEMA {SHOWN_SCHEMA} TO {READER}"
    yield from shown_rows(EXTRACTS.values())
    for name in (*TARGET_NAMES, *LEDGER):
        yield _read(name, _COLUMNS[name], _hidden(name))
    yield f"GRANT SELECT ON {SCHEMA}.alembic_version TO {READER}"


def script() -> str:
    """The statements for psql, in one transaction: all are done, or none if one is refused."""
    whole = ("BEGIN", f"SET LOCAL lock_timeout = '{LOCK_WAIT}'", *statements(), "COMMIT")
    return "\\set ON_ERROR_STOP on\n" + "".join(f"{statement};\n" for statement in whole)


def grants_of(tables: Collection[str]) -> Iterator[str]:
    """The grants on the tables of these record kinds alone, once the roles exist."""
    for name in tables:
        staged = staged_name(EXTRACTS[name])
        yield f"GRANT SELECT ON {_tables((name, staged))} TO {LOADER}"
        yield _write(LOADER, (staged,))
        yield _maintain((staged,))
        yield _write(MERGER, (name,))
        yield _read(name, _COLUMNS[name], _hidden(name))


def role_for(kind: str, name: str) -> str | None:
    """The least role that may use what a user was denied; None if not known."""
    if kind == "event":
        if name in (*DECIDED.values(), *SIGNED.values()):
            return CONTROLLER
        return MERGER if name in (SAVED, *OF_MERGER) else None
    if kind == "function":
        may = MAY_CALL.get(name, ())
        return READER if READER in may else next(iter(may), OWNER)
    if name in (*TARGET_NAMES, *_merged()):
        return MERGER
    if name in ADDED_TO:
        return ADDED_TO[name]
    if name in TRAIL:
        return OWNER
    return LOADER if name in LEDGER or name in VIEWS or name in _STAGED_NAMES else None


def _merged() -> list[str]:
    return [name for name in LEDGER if name not in (*LOADED, *TRAIL, *ADDED_TO)]


def _write(role: str, names: Iterable[str]) -> str:
    return f"GRANT INSERT, UPDATE, DELETE ON {_tables(names)} TO {role}"


def _maintain(names: Iterable[str]) -> str:
    return (
        "DO $$ BEGIN IF current_setting('server_version_num')::int >= 170000 THEN "
        f"GRANT MAINTAIN ON {_tables(names)} TO {LOADER}; END IF; END $$"
    )


def _read(name: str, columns: Iterable[str], hidden: Collection[str], role: str = READER) -> str:
    granted = ", ".join(quoted(column) for column in columns if column not in hidden)
    return f"GRANT SELECT {f'({granted}) ' if hidden else ''}ON {SCHEMA}.{name} TO {role}"


def _hidden(name: str) -> tuple[str, ...]:
    if name in WITH_ROWS:
        return WITH_ROWS[name]
    fields = EXTRACTS[name].delivered if name in EXTRACTS else ()
    return tuple(column for field in fields if field.secret for column in stored_names(field))


def _tables(names: Iterable[str]) -> str:
    return ", ".join(f"{SCHEMA}.{name}" for name in names)


if __name__ == "__main__":
    sys.stdout.write(script())
