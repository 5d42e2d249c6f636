"""Refusals and failures as values, with the ResponseStatus they carry."""

from dataclasses import dataclass, replace

from connectors.sandbox.values import Entries


@dataclass(frozen=True, slots=True)
class FieldFailure:
    """One field error of a ResponseStatus."""

    code: str
    field: str
    message: str
    meta: tuple[tuple[str, str], ...] = ()

    def tree(self) -> dict[str, object]:
        members: dict[str, object] = {
            "ErrorCode": self.code,
            "FieldName": self.field,
            "Message": self.message,
        }
        if self.meta:
            members["Meta"] = Entries(self.meta)
        return members


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure answered with a ResponseStatus."""

    status: int
    code: str
    message: str
    reason: str
    errors: tuple[FieldFailure, ...] = ()
    meta: tuple[tuple[str, str], ...] = ()
    all_columns: bool = False
    """In CSV the error comes after the empty columns of the operation's response."""
    thrown: bool = False
    """The failure came from inside the operation."""

    def at(self, index: int) -> "Failure":
        """The failure with the index, from 0, of its record in a batch."""
        return replace(self, meta=(*self.meta, ("AutoBatchIndex", str(index))))

    def tree(self) -> dict[str, object]:
        status: dict[str, object] = {
            "ErrorCode": self.code,
            "Message": self.message,
            "Errors": [error.tree() for error in self.errors],
        }
        if self.meta:
            status["Meta"] = Entries(self.meta)
        return status


@dataclass(frozen=True, slots=True)
class Refusal:
    """A failure answered with an empty body."""

    status: int
    reason: str
    headers: tuple[tuple[str, str], ...] = ()


NO_CREDENTIALS = Refusal(
    401, "Unauthorized", (("WWW-Authenticate", 'credentials realm="/auth/credentials"'),)
)
NO_ROLE = Refusal(403, "Invalid Role")


def unbound(operation: str, errors: tuple[FieldFailure, ...]) -> Failure:
    """A value of the path, the query or a form does not fit its field's kind."""
    message = f"Unable to bind to request '{operation}'"
    return Failure(400, "SerializationException", message, "Bad Request", errors)


def invalid_value(field: str, text: str) -> FieldFailure:
    """The field error that goes with `unbound`."""
    message = f"'{text}' is an Invalid value for '{field}'"
    return FieldFailure("SerializationException", field, message)


def undeserialized(operation: str, content_type: str) -> Failure:
    """The body cannot be read as its Content-Type."""
    message = f"Could not deserialize '{content_type}' request using '{operation}'"
    return Failure(400, "SerializationException", message, "Bad Request")


def thrown(status: int, code: str, message: str) -> Failure:
    """An exception inside the operation; its name is the code and the reason."""
    return Failure(status, code, message, code, all_columns=True, thrown=True)
