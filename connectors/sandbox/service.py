"""What the operations do, once a request is bound, allowed and valid."""

import logging
from dataclasses import dataclass

import psycopg

from connectors.sandbox.accounts import Accounts
from connectors.sandbox.failures import Failure, thrown
from connectors.sandbox.moments import utc_time
from connectors.sandbox.options import SandboxOptions
from connectors.sandbox.rendering import RESPONSE_STATUS, Result
from connectors.sandbox.store import Store
from connectors.sandbox.values import Nested, Record, Value
from schemas.operations import Operation
from schemas.tables import FORM_REPLY, FORM_RESPONSE, TABLES

_log = logging.getLogger(__name__)
FORM = "CampaignActionsFormResponses"


def response_columns(operation: Operation) -> tuple[str, ...]:
    """Header of the operation's answer in CSV."""
    if operation.response_name:
        return (FORM, RESPONSE_STATUS)
    names = tuple(field.name for field in TABLES[operation.response].fields)
    return names if operation.response == "user_account" else (*names, RESPONSE_STATUS)


def carries_status(operation: Operation) -> bool:
    """Whether the response type has a ResponseStatus of its own."""
    return not operation.returns_list and operation.response != "user_account"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SandboxService:
    """Carries operations out against a store."""

    _options: SandboxOptions
    _store: Store
    _accounts: Accounts

    def carry_out(self, operation: Operation, verb: str, record: Record) -> Result | Failure:
        """Carry the operation out; as in the framework, an exception inside it is a Failure."""
        if verb not in (operation.method, *operation.also):
            name = self._options.name_of(operation)
            method = verb.capitalize()
            message = f"Could not find method named {method}({name}) or Any({name}) on Service"
            return thrown(405, "NotImplementedException", message)
        try:
            return self._carry_out(operation, record)
        except psycopg.Error as error:
            _log.warning("%s failed: %s", operation.name, type(error).__name__)
            return thrown(500, type(error).__name__, "The record cannot be stored.")

    def _carry_out(self, operation: Operation, record: Record) -> Result | Failure:
        columns = response_columns(operation)
        if operation.returns_list:
            return Result(columns, self._store.listed(operation.table, record), many=True)
        match operation.request:
            case "client_registration":
                account = self._accounts.register(record)
                if account is None:
                    message = f"Email {record.get('EMail')} already exists"
                    return thrown(409, "Conflict", message)
                return Result(columns, [account])
            case "form_reply":
                return Result(columns, [{FORM: self._reply(record)}])
            case _:
                with self._store.connection() as connection:
                    self._store.save(connection, operation.table, record)
                echo = {field.name: record.get(field.name) for field in operation.table.fields}
                return Result(columns, [echo])

    def _reply(self, reply: Record) -> Record:
        files, comments = reply.get("CampaignActionFiles"), reply.get("Comments")
        results: dict[str, Nested | None] = {}
        if isinstance(comments, str):
            results["Comments"] = comments
        if isinstance(files, list):
            results["CampaignActionFiles"] = files
        response: dict[str, Value | None] = {
            "CampaignActionsId": reply.get("CampaignActionsRequestsId") or 0,
            "ActionTimestamp": utc_time(self._options.clock()),
            "FormMetaResponses": results,
            "FormMetaFilesResponses": files,
            "FormMetaComments": comments,
        }
        with self._store.connection() as connection, connection.transaction():
            self._store.save(connection, FORM_REPLY, reply)
            number = self._store.save(connection, FORM_RESPONSE, response)
        given = {"Id": number, **response}
        return {field.name: given.get(field.name) for field in FORM_RESPONSE}
