"""The templates of the HTML pages; every text is escaped, and an undefined name is an error."""

from collections.abc import Callable
from functools import partial

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from flows.report.spelling import digits, neutral, visible
from schemas.counting import agree, quantity


def environment(package: str, folder: str, **filters: Callable[..., str]) -> Environment:
    """The templates of a package; `filters` override the common ones."""
    made = Environment(
        loader=PackageLoader(package, folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "agree": agree,
        "digits": digits,
        "neutral": neutral,
        "quantity": partial(quantity, spell=digits),
        "visible": visible,
        **filters,
    }
    return made


def template(name: str, **filters: Callable[..., str]) -> Template:
    """The template with this path below this folder."""
    return environment("flows.report", ".", **filters).get_template(name)
