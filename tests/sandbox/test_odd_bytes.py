"""Whatever bytes a caller sends, in whatever a body says it is, the answer is never a 500."""

import base64
import gzip
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from schemas.operations import OPERATIONS
from tests.examples import examples
from tests.sandbox.caller import basic
from tests.sandbox.conftest import Host
from tests.sandbox.records import PAYMENT_CSV

SEED = 20260102
RUN = settings(
    max_examples=examples(500, 30),
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
PIECES = st.sampled_from(
    [
        *'{}[]",:;=&+%-.\r\n\t\0 \\',
        *("null", "true", "NaN", "1e999", "-1", "99999999999", "0x1", "1,5", "Infinity", "\\ud800"),
        *("/Date(1)/", "/Date(-99999999999999+0200)/", "\\/Date(99999999999999)\\/", "20260102"),
        *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.9999999-14:00", "2026-02-30", "24:00"),
        *("Id", "TenantsId", "PaymentDate", "PaidAmount", "EffectiveDate", "Roles", "Meta", "a@b"),
        *("ExchangeRate", "CampaignActionFiles", "EMail", "Password", "UserName", "provider"),
        PAYMENT_CSV,
        "été \U0001f600",
    ]
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)
BODIES = st.one_of(
    TEXTS.map(str.encode),
    st.binary(max_size=64),
    TEXTS.map(lambda text: gzip.compress(text.encode(), mtime=0)),
)
MEDIA_TYPES = st.sampled_from(
    ["application/json", "text/csv", "application/jsv", "application/x-www-form-urlencoded", "x"]
)
PATHS = st.one_of(
    st.sampled_from([operation.path.replace("{Id}", "1") for operation in OPERATIONS]),
    st.builds(
        "/{}/{}{}".format,
        st.sampled_from(["api", "json/reply", "csv/reply", "jsv/reply", "json/oneway"]),
        st.sampled_from([operation.name for operation in OPERATIONS] + ["Authenticate"]),
        st.sampled_from(["", "[]", ".csv"]),
    ),
    st.sampled_from(["/auth", "/auth/credentials", "/auth/logout", "/openapi.json"]),
    TEXTS.map(lambda text: "/payments/" + quote(text, safe="")),
)
QUERIES = st.dictionaries(
    st.sampled_from(["Id", "format", "jsconfig", "EffectiveDate", "UserName", "Name", "BatchId"]),
    TEXTS.map(lambda text: quote(text, safe="")),
    max_size=3,
).map(lambda query: "&".join(f"{name}={value}" for name, value in query.items()))
HEADERS = st.fixed_dictionaries(
    {
        "Content-Type": MEDIA_TYPES,
        "Accept": st.sampled_from(["application/json", "text/csv", "application/jsv", "*/*", "x"]),
    },
    optional={
        "Content-Encoding": st.sampled_from(["gzip", "deflate", "br"]),
        "X-Http-Method-Override": st.sampled_from(["PUT", "GET", "HEAD", "x"]),
        "Cookie": st.sampled_from(["ss-id=", "=;;=", "ss-tok=", "ss-id=x; ss-id=y"]),
    },
)
CALLERS = st.one_of(
    st.just(basic("partner")),
    st.binary(max_size=12).map(lambda given: "Basic " + base64.b64encode(given).decode()),
    st.sampled_from(["", "Basic", "Basic x", "Bearer", "Bearer x", "x x"]),
)


@pytest.mark.long(but=("pascal",))
@pytest.mark.parametrize("style", ["pascal", "camel"])
def test_never_a_500(style: str, request: pytest.FixtureRequest) -> None:
    host: Host = request.getfixturevalue(style)

    @seed(SEED)
    @RUN
    @given(st.sampled_from(["GET", "POST", "PUT"]), PATHS, QUERIES, HEADERS, CALLERS, BODIES)
    def answered(
        method: str, path: str, query: str, headers: dict[str, str], caller: str, body: bytes
    ) -> None:
        target = f"{path}?{query}" if query else path
        answer = host.caller.send(method, target, body, {**headers, "Authorization": caller})
        assert answer.status in (200, 400, 401, 403, 404, 405, 409), answer

    run: Callable[[], None] = answered
    run()
