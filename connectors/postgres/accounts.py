"""Accounts and logins: how a person proves to the database itself who they are.

A password is turned into a key here and never leaves this process; a login is a token that only the
person logged in has. The database does the refusing (`schemas.guards.accounts`).
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
"""Characters; longer passwords cost time to hash and are no safer."""
TOKEN_BYTES = 32
LONGEST_LOGIN = HOURS * 3600
BATCH_SEEN = f"{SCHEMA}.sees_scope({BATCH_SCOPE})"
"""SQL for whether the acting user sees batch `b`: all, or only those bound to one of their tenants.

A batch bound to no tenant may hold rows of any, so people limited to tenants do not see it.
"""
OF_OTHERS = "a batch that is not of your tenants"
"""What a batch is called to somebody who may not know of it."""
LOGIN_ENDED = (
    "Your login has ended while this was read, or is for other tenants now. Log in, and open the "
    "page again."
)
"""For a page begun under a login that changed meanwhile: it may lack rows or show too many."""
_LONGEST = quantity(LONGEST_WAIT // 60, "minute")
_SALT = re.compile(r"argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([0-9a-f]+)")


@dataclass(frozen=True, slots=True)
class Account:
    name: str
    full_name: str
    roles: tuple[AccountRole, ...]
    tenants: tuple[int, ...] = ()
    """Tenants the account is limited to; empty for all."""
    subject: str | None = None
    """What a provider or proxy calls them: `oidc ISSUER SUBJECT` or `proxy NAME`."""
    disabled: bool = False
    failed: int = 0
    """Logins refused since the last successful one."""
    failed_at: datetime | None = None
    event_id: int = field(default=0, compare=False)
    """The event of its latest change; 0 for a new account."""


@dataclass(frozen=True, slots=True)
class Person:
    """Who acts, as the database knows them by their login."""

    name: str
    full_name: str
    roles: tuple[AccountRole, ...]
    tenants: tuple[int, ...]
    own_password: bool
    """Whether they log in with a password that can be changed here."""
    subject: str | None = None
    """What a provider or proxy calls them."""
    show_as: ShowAs = AS_EVER
    """How dates and numbers are written for them."""

    def has(self, *roles: AccountRole) -> bool:
        return bool({*roles} & {*self.roles})


def acting(connection: psycopg.Connection) -> Person | None:
    """Who is logged in on this connection; None if nobody is, or the login has ended."""
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
    """Who decides or signs: the account logged in, else the stated name, else this user.

    Beside a login, the stated name does not count.
    """
    person = acting(connection)
    return person.name if person else stated or user_at_host()


def has_accounts(connection: psycopg.Connection) -> bool:
    """Whether anybody has an account; without accounts everybody is who they say."""
    return bool(one_value(connection.execute(f"SELECT {SCHEMA}.has_accounts()")))


def scopes_seen(connection: psycopg.Connection, scopes: Iterable[str]) -> set[str]:
    """Those of these reconciliation scopes that the acting user may see."""
    rows = connection.execute(
        f"SELECT scope FROM unnest(%s::text[]) scope WHERE {SCHEMA}.sees_scope(scope)",
        [sorted(scopes)],
    ).fetchall()
    return {str(scope) for (scope,) in rows}


def sees_part(connection: psycopg.Connection) -> bool:
    """Whether the acting user may see only a part of all rows, whichever role reads them."""
    return bool(one_value(connection.execute(f"SELECT NOT {SCHEMA}.sees_all()")))


def refuse_nobody(connection: psycopg.Connection) -> None:
    """Raise LoginRefused if the database shows rows only to people logged in, and nobody is.

    Without this, a query would be answered as if there were nothing.
    """
    if sees_part(connection) and acting(connection) is None:
        raise LoginRefused(
            f"Nobody is logged in, or the login has ended, and the account {connection.info.user} "
            "of the database sees rows only after a login. Log in with `recon login NAME`, then "
            "do it again. Nothing was read or changed."
        )


def is_shown_part(connection: psycopg.Connection) -> bool:
    """Whether row security hides rows from this connection, so that it may not find all."""
    kept = one_value(connection.execute("SELECT row_security_active('batch')"))
    return bool(kept) and sees_part(connection)


def sees_breaks(connection: psycopg.Connection, number: int) -> bool:
    """Whether the acting user may see all breaks of a reconciliation."""
    asked = f"SELECT {SCHEMA}.sees_all() OR %s = ANY ({SCHEMA}.seen_runs(true))"
    return bool(one_value(connection.execute(asked, [number])))


def is_batch_seen(connection: psycopg.Connection, batch_id: int) -> bool:
    """Whether there is such a batch and the acting user may see it."""
    asked = f"SELECT {BATCH_SEEN} FROM batch b WHERE b.id = %s"
    return bool(one_value(connection.execute(asked, [batch_id])))


def visible_batches(connection: psycopg.Connection, batches: Iterable[int]) -> set[int]:
    """Those of these batches that a message here may name or say anything about.

    The message is read by the acting user and, during a job, also by whoever ordered the job.
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
    """What to call a batch in messages: by its number only if the reader may know it."""
    return f"batch {number}" if visible_batches(connection, [number]) else OF_OTHERS


def list_accounts(connection: psycopg.Connection) -> list[Account]:
    """Every account that the acting user may see, disabled ones included, by name.

    Raises LoginRefused if nobody is logged in who may see any; an empty list would mean there
    are none.
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
    """Add an account, or change the one of this name; a disabled account is logged out.

    Refused if it has changed since it was read: `seen` is the `event_id` it had then, 0 if there
    was no such account.
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
    """How dates and numbers are written for an account; None if the acting user sees none."""
    refuse_nobody(connection)
    row = connection.execute("SELECT show_as FROM account WHERE name = %s", [name]).fetchone()
    return ShowAs.read(row[0]) if row else None


def choose_show_as(connection: psycopg.Connection, name: str, show: ShowAs) -> None:
    """Set how dates and numbers are written for one's own account, or any as administrator."""
    connection.execute(f"SELECT {SCHEMA}.choose_show_as(%s, %s)", [name, show.words])


def set_password(
    connection: psycopg.Connection, name: str, password: str, old: str | None = None
) -> None:
    """Give an account a password; `old` is required of people who change their own.

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
            f"This is not the password of {name}, or the account waits: after {TRIES} refused "
            f"tries each one makes it wait longer, {_LONGEST} at most. Nothing was changed."
        )


def list_limits(connection: psycopg.Connection) -> dict[str, Decimal]:
    """Amount above which an acceptance takes two people, by CurrenciesId; * is all others."""
    rows = connection.execute(
        'SELECT currency, above FROM acceptance_limit ORDER BY currency COLLATE "C"'
    ).fetchall()
    return {str(currency): Decimal(above) for currency, above in rows}


def keep_limit(connection: psycopg.Connection, currency: str, above: Decimal | None) -> None:
    """Set the amount above which an acceptance takes two people; None for never."""
    connection.execute(
        f"SELECT {SCHEMA}.keep_limit(%s, %s, %s)",
        [currency, None if above is None else format(above, "f"), who(connection, None)],
    )


def log_in(
    connection: psycopg.Connection, name: str, password: str, seconds: int = LONGEST_LOGIN
) -> str:
    """Log in and give the token; raises LoginRefused, which does not say what was wrong."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    # A name that nobody can have must cost the same time as any other.
    known_as = name if is_name(name) else ""
    key = _key(password[:LONGEST_PASSWORD], _salt(connection, known_as))
    answer = connection.execute(
        f"SELECT {SCHEMA}.log_in(%s, %s, %s, %s)", [known_as, key.hex(), _hash(token), seconds]
    )
    if one_value(answer) == "ok":
        return token
    raise LoginRefused(
        f"Name or password is wrong, or the account is disabled, or it waits: after {TRIES} "
        f"refused tries each one makes it wait longer, {_LONGEST} at most. An administrator sees "
        "who is disabled: `recon user list`."
    )


def vouch(connection: psycopg.Connection, known_as: str, how: How) -> str | None:
    """Give a token for a login that a provider or proxy vouches for; None if unknown."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    found = connection.execute(
        f"SELECT {SCHEMA}.vouch(%s, %s, %s, %s)", [known_as, how, _hash(token), LONGEST_LOGIN]
    )
    return token if one_value(found) else None


def act_as(connection: psycopg.Connection, token: str | None) -> None:
    """Make a connection act by the login of this token from here on; None for no login."""
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
