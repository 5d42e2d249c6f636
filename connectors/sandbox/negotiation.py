"""In which representation the service answers, by the framework's precedence."""

from connectors.sandbox.messages import ServedRequest, media_type
from connectors.sandbox.rendering import Format
from connectors.sandbox.routes import Door, Route

_PREFERRED = (
    ("text/html", Format.HTML),
    ("application/json", Format.JSON),
    # XML is preferred over JSV and CSV by the framework; it is shown as a page here.
    ("application/xml", Format.HTML),
    ("application/jsv", Format.JSV),
)
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


def response_format(request: ServedRequest, route: Route) -> Format:
    """Suffix over `format` over Accept; a predefined path says its own, unless `format` does."""
    wished = _named(request.query.get("format", ""))
    if route.door in (Door.REPLY, Door.API):
        return wished or route.suffix or Format.JSON
    if route.suffix or wished:
        return route.suffix or wished or Format.JSON
    return _accepted(request)


def _named(text: str) -> Format | None:
    name = text.partition(".")[0].lower()
    for mark, form in (("json", Format.JSON), ("xml", Format.HTML), ("jsv", Format.JSV)):
        if mark in name:
            return form
    return {"csv": Format.CSV, "html": Format.HTML}.get(name)


def _accepted(request: ServedRequest) -> Format:
    """By Accept: its order and weights do not count."""
    if "accept" not in request.headers:
        return Format.HTML
    accepted = [media_type(part) for part in request.headers["accept"].split(",")]
    preferred = [pair for pair in _PREFERRED if any(a.startswith(pair[0]) for a in accepted)]
    for name, form in preferred:
        if name == request.content_type:
            return form
    if preferred:
        return preferred[0][1]
    if "*/*" in accepted:
        return _of_body(request.content_type)
    return Format.CSV if any(a.startswith("text/csv") for a in accepted) else Format.HTML


def _of_body(content_type: str) -> Format:
    if content_type in _FORMS:
        return Format.HTML
    known = dict((*_PREFERRED, ("text/csv", Format.CSV)))
    return known.get(content_type, Format.HTML)
