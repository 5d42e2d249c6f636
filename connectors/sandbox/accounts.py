"""The accounts of a sandbox: created by registration or given as options, kept in PostgreSQL."""

import hashlib
import hmac
import json
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from connectors.sandbox.moments import utc_time
from connectors.sandbox.options import SandboxOptions, User
from connectors.sandbox.shapes import kept_text
from connectors.sandbox.store import Connection, Store
from connectors.sandbox.values import Record, Value
from schemas.derived.nested import json_text
from schemas.tables import USER_ACCOUNT

MOST_REMEMBERED = 4096
_BLOCK = 8
"""scrypt's block size; the cost is stored in each hash."""
_COLUMNS = '"Id", "UserName", "Email", "DisplayName", "FirstName", "LastName", "Roles"'
_NAMED = (
    "FROM sandbox.user_account"
    ' WHERE lower("UserName") = lower(%s) OR lower("Email") = lower(%s) ORDER BY "Id" LIMIT 1'
)
_BY_NAME = f'SELECT {_COLUMNS}, "PasswordHash" {_NAMED}'
_RENEW = (
    'UPDATE sandbox.user_account SET "PasswordHash" = %s, "Roles" = %s'
    f' WHERE "Id" = (SELECT "Id" {_NAMED})'
)
_BY_NUMBER = f'SELECT {_COLUMNS} FROM sandbox.user_account WHERE "Id" = %s::bigint'


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """The account that is calling."""

    number: int
    name: str
    display_name: str
    roles: tuple[str, ...]
    mail: str | None = None


class Accounts:
    """Finds and creates accounts."""

    def __init__(self, options: SandboxOptions, store: Store) -> None:
        self._options = options
        self._store = store
        self._lock = threading.Lock()
        self._pepper = secrets.token_bytes(16)
        # A password hash takes milliseconds by design, and a caller sends the same password often.
        self._proved: dict[bytes, ServiceAccount] = {}

    def seed(self) -> None:
        """Create the users of the options, or renew the password and roles of existing ones."""
        for user in self._options.users:
            hashed = hash_password(user.password, self._options.password_cost)
            with self._store.filling() as connection, connection.transaction():
                # The account is found just as signing in by this name finds it.
                given = [hashed, json_text([*user.roles]), *[kept_text(user.name)] * 2]
                renewed = connection.execute(_RENEW, given)
                if renewed.rowcount == 0:
                    self._create(connection, user, hashed)

    def forget(self) -> None:
        """Forget which passwords were proved, because the accounts have changed."""
        with self._lock:
            self._proved.clear()

    def by_password(self, name: str, password: str) -> ServiceAccount | None:
        """The account with this name or e-mail address and this password."""
        proof = self._proof(name, password)
        known = self._proved.get(proof)
        if known is not None:
            return known
        with self._store.connection() as connection:
            row = connection.execute(_BY_NAME, [kept_text(name)] * 2).fetchone()
        if row is None or not row["PasswordHash"] or not matches(password, row["PasswordHash"]):
            return None
        account = _account(row)
        with self._lock:
            if len(self._proved) >= MOST_REMEMBERED:
                self._proved.clear()
            self._proved[proof] = account
        return account

    def by_number(self, number: str) -> ServiceAccount | None:
        with self._store.connection() as connection:
            row = connection.execute(_BY_NUMBER, [number]).fetchone()
        return None if row is None else _account(row)

    def by_key(self, key: str) -> ServiceAccount | None:
        """The account of the configured user with this API key."""
        for user in self._options.users:
            if user.api_key is not None and secrets.compare_digest(
                user.api_key.encode(), key.encode()
            ):
                return self.by_password(user.name, user.password)
        return None

    def register(self, registration: Record) -> Record | None:
        """Create an account; its record without secrets, or None if the e-mail address is taken."""
        mail = registration.get("EMail")
        address = kept_text(str(mail))
        password = registration.get("Password")
        now = utc_time(self._options.clock())
        record: dict[str, Value | None] = {
            "Email": mail,
            "FirstName": registration.get("FirstName"),
            "LastName": registration.get("LastName"),
            "Company": registration.get("Company"),
            "Roles": registration.get("Roles") or [],
            "Permissions": [],
            "CreatedDate": now,
            "ModifiedDate": now,
            "InvalidLoginAttempts": 0,
            "RefId": registration.get("PartnerUserID"),
        }
        # Without validators the password may be missing: nobody can sign in to such an account.
        cost = self._options.password_cost
        hashed = None if password is None else hash_password(str(password), cost)
        kept = {**record, "PasswordHash": hashed}
        with self._store.connection() as connection, connection.transaction():
            # Two registrations of one address must not both find it free. A mere reader of the
            # table cannot hold up this lock.
            connection.execute("LOCK TABLE sandbox.user_account IN SHARE ROW EXCLUSIVE MODE")
            if mail is not None and connection.execute(_BY_NAME, [address] * 2).fetchone():
                return None
            number = self._store.save(connection, USER_ACCOUNT, kept)
        given = {"Id": number, **record}
        return {field.name: given.get(field.name) for field in USER_ACCOUNT}

    def _create(self, connection: Connection, user: User, hashed: str) -> None:
        now = utc_time(self._options.clock())
        record: dict[str, Value | None] = {
            "UserName": user.name,
            "DisplayName": user.name,
            "Roles": list(user.roles),
            "Permissions": [],
            "CreatedDate": now,
            "ModifiedDate": now,
            "InvalidLoginAttempts": 0,
            "PasswordHash": hashed,
        }
        self._store.save(connection, USER_ACCOUNT, record)

    def _proof(self, name: str, password: str) -> bytes:
        text = f"{len(name)}:{name}{password}".encode(errors="surrogatepass")
        return hashlib.sha256(self._pepper + text).digest()


def hash_password(password: str, cost: int) -> str:
    """A new salted hash; `cost` is scrypt's n."""
    salt = secrets.token_bytes(16)
    return f"scrypt${cost}${salt.hex()}${_derive(password, salt, cost).hex()}"


def matches(password: str, kept: str) -> bool:
    _, cost, salt, derived = kept.split("$")
    found = _derive(password, bytes.fromhex(salt), int(cost))
    return hmac.compare_digest(found, bytes.fromhex(derived))


def _derive(password: str, salt: bytes, cost: int) -> bytes:
    return hashlib.scrypt(
        password.encode(errors="surrogatepass"),
        salt=salt,
        n=cost,
        r=_BLOCK,
        p=1,
        maxmem=256 * cost * _BLOCK,
    )


def _account(row: Mapping[str, object]) -> ServiceAccount:
    roles = json.loads(str(row["Roles"] or "[]"))
    name = str(row["UserName"] or row["Email"] or "")
    whole = f"{row['FirstName'] or ''} {row['LastName'] or ''}".strip()
    display = str(row["DisplayName"] or row["UserName"] or whole)
    mail = None if row["Email"] is None else str(row["Email"])
    return ServiceAccount(
        int(str(row["Id"])), name, display, tuple(role for role in roles if role), mail
    )
