"""Breaks that are planted, and must be found."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Planted:
    """One break that must be found."""

    code: str
    record: str
    key: str
    field: str = ""
    delta: str = ""


def pay(code: str, number: int, name: str = "", delta: str = "", tenant: int = 7) -> Planted:
    """A break of the payment with this number."""
    return Planted(code, "payment", f"{1000 + number}/{tenant}", name, delta)


def rate(code: str, number: int, name: str = "") -> Planted:
    """A break of the rate with this Id."""
    return Planted(code, "currency_rate", f"{number}/7", name)


def detail(code: str, key: str, name: str = "") -> Planted:
    """A break of the plan detail that reads like this, or of a plan."""
    return Planted(code, "payment_plan_detail", key, name)


def debt(code: str, key: str, name: str, delta: str = "") -> Planted:
    """A break of a debt, in one currency or over all of them."""
    return Planted(code, "payment", key, name, delta)
