"""What names a Prefect server and is no address, or no key, is told, and shown nowhere."""

import pytest

from connectors.errors import ReconError
from flows.ops.whose_server import refuse_unreachable

NOBODY = "http://127.0.0.1:1/api"


@pytest.mark.parametrize(
    ("url", "key", "login", "told"),
    [
        ("http://ann:canary-7@[::1/api", None, None, "PREFECT_API_URL is no address"),
        ("http://canary-7]/api", None, None, "PREFECT_API_URL is no address"),
        (NOBODY, "canary-7-ключ", None, "PREFECT_API_KEY has a character"),
        (NOBODY, "", "ann:canary-7-\udcff", "No Prefect server answers"),
        ("http://ann:canary-7@127.0.0.1:1/api", None, None, "answers at http://127.0.0.1:1/api"),
    ],
)
def test_what_names_no_server_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, url: str, key: str | None, login: str | None, told: str
) -> None:
    for name, value in (("PREFECT_API_KEY", key), ("PREFECT_API_AUTH_STRING", login)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    with pytest.raises(ReconError, match=told) as refused:
        refuse_unreachable(url)
    assert "canary" not in str(refused.value)
