"""Accounts and logins: who somebody is, shown to the database itself.

A password is made into a key here and never leaves this process; a login is a token that only
whoever logged in has. What refuses is the database (`schemas.guards.accounts`).
"""

import hashlib
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

import psycopg
from argon2.low_level import Type, hash_secret_raw
from psycopg.rows import dict_row

from connectors.errors import LoginRefused
from connectors.postgres.query import one_value
from connectors.process import user_at_host
from schemas.accounts import HOURS, AccountRole, How, is_name
from schemas.counting import quantity
from schemas.derived.sql_names import SCHEMA
from schemas.guards.accounts import ARGON2, BATCH_SCOPE, LOGIN
from schemas.guards.jobs import names_batch
from schemas.guards.logins import LONGEST_WAIT, TRIES
from schemas.guards.tenants import SEES_ACCOUNT
from schemas.show_as import AS_EVER, ShowAs

SHORTEST_PASSWORD, LONGEST_PASSWORD = 12, 1024
"""Characters; what is longer costs time to hash and makes nothing safer."""
TOKEN_BYTES = 32
LONGEST_LOGIN = HOURS * 3600
BATCH_SEEN = f"{SCHEMA}.sees_scope({BATCH_SCOPE})"
"""SQL for whether whoever acts sees the batch `b`: with some tenants, one bound to one of these.

A batch that is bound to no tenant may hold rows of any.
"""
OF_OTHERS = "a batch that is not of your tenants"
"""What one is called to whoever is told nothing of it."""
LOGIN_ENDED = (
    "Your login has ended while this was read, or is for other tenants now. Log in, and open the "
    "page again."
)
"""Of a page that was begun for a login: what it would show is not all, or not theirs any more."""
_LONGEST = quantity(LONGEST_WAIT // 60, "minute")
_SALT = re.compile(r"argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([0-9a-f]+)")


@dataclass(frozen=True, slots=True)
class Account:
    name: str
    full_name: str
    roles: tuple[AccountRole, ...]
    tenants: tuple[int, ...] = ()
    """Empty: all."""
    subject: str | None = None
    """How a provider or proxy knows them: `oidc ISSUER SUBJECT` or `proxy NAME`."""
    disabled: bool = False
    failed: int = 0
    """Logins refused since the last one that was not."""
    failed_at: datetime | None = None
    event_id: int = field(default=0, compare=False)
    """The event that says what it is now; 0: it is a new one."""


@dataclass(frozen=True, slots=True)
class Person:
    """Who acts, as the database knows it by the login."""

    name: str
    full_name: str
    roles: tuple[AccountRole, ...]
    tenants: tuple[int, ...]
    own_password: bool
    """Whether they log in with a password that they can change here."""
    subject: str | None = None
    """How a provider or proxy knows them."""
    show_as: ShowAs = AS_EVER
    """How dates and numbers are written for them."""

    def has(self, *roles: AccountRole) -> bool:
        return bool({*roles} & {*self.roles})


def acting(connection: psycopg.Connection) -> Person | None:
    """Who is logged in on this connection; None: nobody, or no longer."""
    person = one_value(connection.execute(f"SELECT {SCHEMA}.acting_as()"))
    if person is None:
        return None
    return Person(
        person["name"],
        person["full_name"],
        _roles(person["roles"]),
        _tenants(person["tenants"]),
        person["own_password"],
        person["subject"],
        ShowAs.read(person["show_as"]),
    )


def who(connection: psycopg.Connection, stated: str | None) -> str:
    """Who decides or signs: the account that is logged in, else the stated name, else this user.

    What is stated beside a login is a note, and no name.
    """
    person = acting(connection)
    return person.name if person else stated or user_at_host()


def has_accounts(connection: psycopg.Connection) -> bool:
    """Whether anybody has an account; without one everybody is who they say."""
    return bool(one_value(connection.execute(f"SELECT {SCHEMA}.has_accounts()")))


def scopes_seen(connection: psycopg.Connection, scopes: Iterable[str]) -> set[str]:
    """Those of some scopes of reconciliations that whoever acts here sees."""
    rows = connection.execute(
        f"SELECT scope FROM unnest(%s::text[]) scope WHERE {SCHEMA}.sees_scope(scope)",
        [sorted(scopes)],
    ).fetchall()
    return {str(scope) for (scope,) in rows}


def sees_part(connection: psycopg.Connection) -> bool:
    """Whether whoever acts here may see a part of what there is, whichever role reads it."""
    return bool(one_value(connection.execute(f"SELECT NOT {SCHEMA}.sees_all()")))


def refuse_nobody(connection: psycopg.Connection) -> None:
    """Raise LoginRefused where the database shows its rows to whoever is logged in, and nobody is.

    What is asked without a login would be answered as if there was nothing.
    """
    if sees_part(connection) and acting(connection) is None:
        raise LoginRefused(
            f"Nobody is logged in, or no longer, and the account {connection.info.user} of the "
            "database is shown its rows by a login alone. Log in with `recon login NAME`, then do "
            "it again. Nothing was read or changed."
        )


def is_shown_part(connection: psycopg.Connection) -> bool:
    """Whether PostgreSQL keeps rows from this connection, so that what it finds may not be all."""
    kept = one_value(connection.execute("SELECT row_security_active('batch')"))
    return bool(kept) and sees_part(connection)


def sees_breaks(connection: psycopg.Connection, number: int) -> bool:
    """Whether whoever acts here sees all breaks of a reconciliation."""
    asked = f"SELECT {SCHEMA}.sees_all() OR %s = ANY ({SCHEMA}.seen_runs(true))"
    return bool(one_value(connection.execute(asked, [number])))


def is_batch_seen(connection: psycopg.Connection, batch_id: int) -> bool:
    """Whether there is such a batch, and whoever acts here sees it."""
    asked = f"SELECT {BATCH_SEEN} FROM batch b WHERE b.id = %s"
    return bool(one_value(connection.execute(asked, [batch_id])))


def visible_batches(connection: psycopg.Connection, batches: Iterable[int]) -> set[int]:
    """Those of some batches that what is said here may name, or tell anything of.

    It is read by whoever acts here or, of the work of a job, by whoever asked for that.
    """
    named = list(batches)
    if not named:
        return set()
    rows = connection.execute(
        f"""SELECT b.id FROM batch b WHERE b.id = ANY(%s) AND {BATCH_SEEN}
        AND NOT EXISTS (SELECT FROM job j
            WHERE j.id::text = current_setting('recon.job', true) AND NOT {names_batch("j")})
        """,
        [named],
    ).fetchall()
    return {int(number) for (number,) in rows}


def batch_label(connection: psycopg.Connection, number: int) -> str:
    """What a batch is called in messages: its number only to whoever may be told that."""
    return f"batch {number}" if visible_batches(connection, [number]) else OF_OTHERS


def list_accounts(connection: psycopg.Connection) -> list[Account]:
    """Every account that whoever acts sees, disabled ones as well, by name.

    Raises LoginRefused where that is nobody: to be shown none would say that there is none.
    """
    refuse_nobody(connection)
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(
            "SELECT name, full_name, roles, tenants, subject, disabled, failed, failed_at, "
            f"event_id FROM account, {SCHEMA}.refused(name, '{LOGIN}') "
            f"WHERE {SEES_ACCOUNT} "
            'ORDER BY name COLLATE "C"'
        ).fetchall()
    return [
        Account(**row | {"roles": _roles(row["roles"]), "tenants": _tenants(row["tenants"])})
        for row in rows
    ]


def keep_account(connection: psycopg.Connection, account: Account, seen: int | None = None) -> None:
    """Add an account, or change the one of this name; one that is disabled is logged out.

    Refused where it is not as it was read: `seen` is the `event_id` it had, 0 where there was none.
    """
    connection.execute(
        f"SELECT {SCHEMA}.keep_account(%s, %s, %s, %s, %s, %s, %s, %s)",
        [
            account.name,
            account.full_name,
            " ".join(account.roles),
            " ".join(map(str, account.tenants)) or None,
            account.subject,
            account.disabled,
            who(connection, None),
            seen,
        ],
    )


def chosen_show_as(connection: psycopg.Connection, name: str) -> ShowAs | None:
    """How dates and numbers are written for an account; None: none is seen of this name."""
    refuse_nobody(connection)
    row = connection.execute("SELECT show_as FROM account WHERE name = %s", [name]).fetchone()
    return ShowAs.read(row[0]) if row else None


def choose_show_as(connection: psycopg.Connection, name: str, show: ShowAs) -> None:
    """Keep how dates and numbers are written for an account: one's own, or as administrator."""
    connection.execute(f"SELECT {SCHEMA}.choose_show_as(%s, %s)", [name, show.words])


def set_password(
    connection: psycopg.Connection, name: str, password: str, old: str | None = None
) -> None:
    """Give an account a password; `old` is asked of who changes their own.

    Raises LoginRefused; a wrong `old` counts as a login that was refused.
    """
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise LoginRefused(
            f"A password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters; this one has "
            f"{len(password)}. Nothing was changed."
        )
    salt = f"{ARGON2}{secrets.token_hex(16)}"
    verifier = hashlib.sha256(_key(password, salt)).hexdigest()
    old_key = None if old is None else _key(old, _salt(connection, name)).hex()
    event = connection.execute(
        f"SELECT {SCHEMA}.set_password(%s, %s, %s, %s, %s)",
        [name, salt, verifier, old_key, who(connection, None)],
    )
    if one_value(event) is None:
        raise LoginRefused(
            f"This is not the password of {name}, or it waits: after {TRIES} refused tries each "
            f"takes longer, {_LONGEST} at most. Nothing was changed."
        )


def list_limits(connection: psycopg.Connection) -> dict[str, Decimal]:
    """CurrenciesId, or * for all others -> above which amount an acceptance takes two people."""
    rows = connection.execute(
        'SELECT currency, above FROM acceptance_limit ORDER BY currency COLLATE "C"'
    ).fetchall()
    return {str(currency): Decimal(above) for currency, above in rows}


def keep_limit(connection: psycopg.Connection, currency: str, above: Decimal | None) -> None:
    """Set above which amount an acceptance takes two people; None: never."""
    connection.execute(
        f"SELECT {SCHEMA}.keep_limit(%s, %s, %s)",
        [currency, None if above is None else format(above, "f"), who(connection, None)],
    )


def log_in(
    connection: psycopg.Connection, name: str, password: str, seconds: int = LONGEST_LOGIN
) -> str:
    """The token of a new login; raises LoginRefused, which does not say what was wrong."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    # A name that none can have costs the same time as any other.
    known_as = name if is_name(name) else ""
    key = _key(password[:LONGEST_PASSWORD], _salt(connection, known_as))
    answer = connection.execute(
        f"SELECT {SCHEMA}.log_in(%s, %s, %s, %s)", [known_as, key.hex(), _hash(token), seconds]
    )
    if one_value(answer) == "ok":
        return token
    raise LoginRefused(
        "Name or password is wrong, or the account is disabled, or it waits: after "
        f"{TRIES} refused tries each takes longer, {_LONGEST} at most. "
        "An administrator sees who is disabled: `recon user list`."
    )


def vouch(connection: psycopg.Connection, known_as: str, how: How) -> str | None:
    """The token of a login that a provider or proxy stands for; None: no account is known so."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    found = connection.execute(
        f"SELECT {SCHEMA}.vouch(%s, %s, %s, %s)", [known_as, how, _hash(token), LONGEST_LOGIN]
    )
    return token if one_value(found) else None


def act_as(connection: psycopg.Connection, token: str | None) -> None:
    """Let a connection act by the login of this token from here on; None: by none."""
    connection.execute("SELECT set_config('recon.login', %s, false)", [token or ""])


def log_out(connection: psycopg.Connection) -> None:
    connection.execute(f"SELECT {SCHEMA}.log_out()")


def _salt(connection: psycopg.Connection, name: str) -> str:
    return str(one_value(connection.execute(f"SELECT {SCHEMA}.login_salt(%s)", [name])))


def _key(password: str, salt: str) -> bytes:
    found = _SALT.fullmatch(salt)
    assert found is not None, "the database gives salts of this form alone"
    memory, time, lanes = map(int, found.groups()[:3])
    return hash_secret_raw(
        password.encode(), bytes.fromhex(found[4]), time, memory, lanes, 32, Type.ID
    )


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _roles(text: str) -> tuple[AccountRole, ...]:
    return tuple(map(AccountRole, text.split()))


def _tenants(text: str | None) -> tuple[int, ...]:
    return tuple(map(int, (text or "").split()))
