"""The framework's own authentication service: sign in, who am I, sign out."""

from dataclasses import dataclass

from connectors.sandbox.accounts import Accounts, ServiceAccount
from connectors.sandbox.authentication import Authentication, Sessions, Tokens
from connectors.sandbox.binding import Binder
from connectors.sandbox.failures import Failure, FieldFailure, thrown
from connectors.sandbox.messages import ServedRequest
from connectors.sandbox.options import SandboxOptions
from connectors.sandbox.rendering import RESPONSE_STATUS, Result
from connectors.sandbox.routes import AUTHENTICATE as NAME
from connectors.sandbox.routes import Route
from schemas.field import Field, Kind, Table

AUTHENTICATE = Table(
    name="authenticate",
    title=NAME,
    extract=False,
    fields=(
        Field("provider", Kind.STRING),
        Field("UserName", Kind.STRING),
        Field("Password", Kind.STRING, secret=True),
        Field("RememberMe", Kind.BOOLEAN),
    ),
)
ANSWER = Table(
    name="authenticate_response",
    title=f"{NAME}Response",
    extract=False,
    fields=(
        Field("UserId", Kind.STRING),
        Field("SessionId", Kind.STRING),
        Field("UserName", Kind.STRING),
        Field("DisplayName", Kind.STRING),
        Field("BearerToken", Kind.STRING, secret=True),
    ),
)
COLUMNS = (*ANSWER.columns, RESPONSE_STATUS)
_TWENTY_YEARS = 20 * 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class SignedToken:
    """A successful answer and its extra headers."""

    result: Result
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Signing:
    """Answers the authentication paths of one host."""

    _options: SandboxOptions
    _accounts: Accounts
    _sessions: Sessions
    _tokens: Tokens
    _authentication: Authentication

    def answer(self, request: ServedRequest, route: Route) -> SignedToken | Failure:
        bound = Binder(self._options).one(request, route, AUTHENTICATE, NAME)
        if isinstance(bound, Failure):
            return bound
        given = bound.get("provider")
        provider = route.provider or (str(given).lower() if given else None)
        name, password = bound.get("UserName"), bound.get("Password")
        match provider:
            case "logout":
                return self._sign_out(request)
            case None if name is None:
                return self._who(request)
            case None | "credentials" | "login":
                if request.verb == "GET" and self._options.traits.system_json:
                    return thrown(
                        405, "NotSupportedException", "GET Authenticate requests are disabled"
                    )
                return self._sign_in(str(name or ""), str(password or ""))
            case _:
                message = f"No configuration was added for OAuth provider '{provider}'"
                return thrown(404, "NotFound", message)

    def _sign_in(self, name: str, password: str) -> SignedToken | Failure:
        empty = [
            FieldFailure(
                "NotEmpty",
                field,
                f"'{display}' {self._options.traits.not_empty}",
                (("PropertyName", display),),
            )
            for field, display, text in (
                ("UserName", "User Name", name),
                ("Password", "Password", password),
            )
            if not text.strip()
        ]
        if empty:
            message = "Validation failed: " + " ".join(error.message for error in empty)
            code = "ValidationException"
            return Failure(400, code, message, code, tuple(empty), all_columns=True, thrown=True)
        account = self._accounts.by_password(name, password)
        if account is None:
            return thrown(401, "Unauthorized", self._options.traits.refused_sign_in)
        session = self._sessions.begin(account)
        cookies = (
            f"ss-id={session}; path=/; HttpOnly",
            f"ss-pid={session}; max-age={_TWENTY_YEARS}; path=/; HttpOnly",
            "ss-opt=temp; path=/; HttpOnly",
            f"X-UAId={account.number}; max-age={_TWENTY_YEARS}; path=/; HttpOnly",
        )
        headers = tuple(("Set-Cookie", cookie) for cookie in cookies)
        return SignedToken(self._session_result(account, session), headers)

    def _who(self, request: ServedRequest) -> SignedToken | Failure:
        caller = self._authentication.caller(request)
        if isinstance(caller, Failure):
            return caller
        if caller is None:
            message = "Not Authenticated"
            return Failure(401, "Unauthorized", message, message, all_columns=True, thrown=True)
        return SignedToken(self._session_result(caller, request.cookies.get("ss-id")))

    def _sign_out(self, request: ServedRequest) -> SignedToken:
        self._sessions.end(request.cookies.get("ss-id", ""))
        gone = ("Set-Cookie", "ss-id=; max-age=0; path=/; HttpOnly")
        return SignedToken(Result(COLUMNS, [{RESPONSE_STATUS: {}}]), (gone,))

    def _session_result(self, account: ServiceAccount, session: str | None) -> Result:
        token = self._tokens.sign(account, self._options.clock())
        record: dict[str, object] = {
            "UserId": str(account.number),
            "SessionId": session,
            "UserName": account.name,
            "DisplayName": account.display_name,
            "BearerToken": token,
            RESPONSE_STATUS: {},
        }
        return Result(COLUMNS, [record])
