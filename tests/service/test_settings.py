"""The settings of the service: typed, and an error names the variable."""

from pathlib import Path
from typing import Any

import pytest

from connectors.errors import SettingsError
from connectors.settings import ServiceSettings, read_service_settings, read_settings

READ: list[tuple[str, str, Any]] = [
    # setting, text, value
    ("url", "https://pay.example/base", "https://pay.example/base"),
    ("format", "json", "json"),
    ("zone", "Europe/Berlin", "Europe/Berlin"),
    ("concurrency", "32", 32),
    ("rate", "2.5", 2.5),
    ("rate", "0", 0.0),
    ("batch", "100", 100),
    ("seed", "0", 0),
    ("ca_file", "/etc/ca.pem", Path("/etc/ca.pem")),
    ("idempotent", "true", True),
    ("idempotent", "False", False),
    ("health_path", "/avatars?Id=0", "/avatars?Id=0"),
    ("health_attempts", "1", 1),
    ("answer_seconds", "7.5", 7.5),
    ("operations", "EditPayment=SavePayment", {"EditPayment": "SavePayment"}),
    (
        "operations",
        "EditPayment = A , AddMessageTone=B",
        {"EditPayment": "A", "AddMessageTone": "B"},
    ),
    # A PUT goes by its path alone.
    ("operations", "EditPayment=A,EditInvoiceFile=A", {"EditPayment": "A", "EditInvoiceFile": "A"}),
]


@pytest.mark.parametrize(("setting", "text", "value"), READ)
def test_every_setting_has_a_variable(setting: str, text: str, value: object) -> None:
    read = read_settings({f"RECON_SERVICE_{setting.upper()}": text}).service
    assert getattr(read, setting) == value


def test_nothing_is_set() -> None:
    assert read_service_settings({"RECON_SERVICE_URL": ""}) == ServiceSettings()
    assert ServiceSettings().url is None


UNUSABLE = [
    # setting, text, part of the message
    ("url", "pay.example", "Use https://HOST"),
    ("url", "ftp://pay.example", "Use https://HOST"),
    ("url", "https://", "Use https://HOST"),
    ("url", "https://h:99999", "Use https://HOST"),
    ("url", "https://user:pass-word@h", "RECON_SERVICE_PASSWORD"),
    ("url", "https://h/?a=1", "leave out a query"),
    ("url", "https://h/a b", "blanks"),
    ("format", "xml", "neither csv nor json"),
    ("zone", "Mars/Base", "no time zone"),
    ("concurrency", "0", "positive whole number"),
    ("idempotent", "yes", "neither true nor false"),
    ("health_path", "auth", "no path"),
    ("health_path", "/a b", "no path"),
    ("health_path", "/a#b", "no path"),
    ("health_attempts", "0", "positive whole number"),
    ("concurrency", "-1", "positive whole number"),
    ("concurrency", "two", "positive whole number"),
    ("concurrency", "9" * 5000, "positive whole number"),
    ("seed", "9" * 5000, "positive whole number"),
    ("concurrency", "1025", "more than 1024 connections"),
    ("batch", "201", "more than 200 rows of one request"),
    ("rate", "5e-324", "less than 0.001 requests a second"),
    ("rate", "-1", "positive number"),
    ("rate", "nan", "positive number"),
    ("answer_seconds", "0", "positive number"),
    ("answer_seconds", "inf", "positive number"),
    ("operations", "EditPaymnt=X", "'EditPaymnt' has to be one of"),
    ("operations", "EditPayment=a/b", "'EditPayment' has to be"),
    ("operations", "EditPayment", "'EditPayment' has to be"),
    ("operations", "EditPayment=A,EditPayment=B", "EditPayment has two names of the host"),
    ("operations", "EditPayment=A,AddMessageTone=a", "EditPayment and AddMessageTone have one"),
    ("operations", "AddMessageTone=addpaymentgateway", "AddPaymentGateway and AddMessageTone have"),
]


@pytest.mark.parametrize(("setting", "text", "message"), UNUSABLE)
def test_what_cannot_be_used_is_said(setting: str, text: str, message: str) -> None:
    variable = f"RECON_SERVICE_{setting.upper()}"
    with pytest.raises(SettingsError, match=message) as problem:
        read_service_settings({variable: text})
    assert variable in str(problem.value)
    assert "pass-word" not in str(problem.value)
