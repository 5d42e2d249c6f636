"""Read the service document's own tables and lists of fields."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from schemas.field import Rule

VALIDATIONS: dict[str, tuple[Rule, ...]] = {
    "yes": (Rule.NOT_NULL,),
    "no": (),
    "none": (),
    "output only": (),
    "not null": (Rule.NOT_NULL,),
    "not null and not empty": (Rule.NOT_NULL, Rule.NOT_EMPTY),
    "must be a valid e-mail format": (Rule.EMAIL,),
}
COUNTS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
NULLABLE_MAP = "map<string,string>, values may be null"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
RESPONSE_WRAPPER = re.compile(r"(\w+): (\w+) \(form response record\), ResponseStatus")


@dataclass(frozen=True)
class Documented:
    """What the document says of one field."""

    name: str
    type: str
    rules: tuple[Rule, ...] = ()
    output_only: bool = False


@dataclass(frozen=True)
class Endpoint:
    """What the document says of one operation; records are named by their titles."""

    methods: tuple[str, ...]
    path: str
    request: str
    request_fields: tuple[str, ...]
    response: str
    response_name: str | None
    returns_list: bool
    roles: tuple[str, ...]


def documented_records(document: str) -> dict[str, list[Documented]]:
    """The fields of every record by title, from tables and from prose."""
    records: dict[str, list[Documented]] = {}
    resources = chapter(document, "Resources and their fields")
    for section in re.split(r"^### ", resources, flags=re.MULTILINE)[1:]:
        heading, _, body = section.partition("\n")
        title = heading.split(" (")[0]
        rows = table_rows(body)
        if rows:
            records[title] = [from_row(rows[0], row) for row in rows[1:]]
        else:
            records[title] = from_prose(body.strip().splitlines()[0])
        error = re.search(r"^(Field error): (.*)", body, flags=re.MULTILINE)
        if error:
            records[error[1]] = from_prose(error[2])
    reply = re.search(r"\| (SaveCampaignActionClientForm): ([^|]*)", document)
    assert reply is not None, "the form reply is no longer described among the endpoints"
    return records | {reply[1]: from_prose(reply[2])}


def from_row(header: list[str], row: list[str]) -> Documented:
    cells = dict(zip(header, row, strict=True))
    kind = cells["Type"].replace("list of field errors", "list<Field error>")
    if "Notes" in cells:
        required = re.match(r"Required\b", cells["Notes"])
        return Documented(cells["Field"], kind, (Rule.NOT_NULL,) if required else ())
    validation = row[2] if len(row) > 2 else "none"
    return Documented(
        cells["Field"], kind, VALIDATIONS[validation], output_only=validation == "output only"
    )


def from_prose(text: str) -> list[Documented]:
    """Fields of `Name (type), Name (type)`; `A, B (all string)` gives A and B the same type."""
    fields: list[Documented] = []
    waiting: list[str] = []
    for part in re.split(r", (?![^(]*\))", listed(text)):
        match = re.fullmatch(r"(\w+)(?: \(([^()]+)\))?", part)
        assert match is not None, f"{part!r} is no field"
        waiting.append(match[1])
        if match[2]:
            fields += [Documented(each, match[2].removeprefix("all ")) for each in waiting]
            waiting = []
    assert not waiting, f"no type is given for {waiting}"
    return fields


def listed(text: str) -> str:
    """The list itself, without the sentence that may follow it."""
    return text.strip().removesuffix(" All optional as request fields.").removesuffix(".")


def documented_endpoints(document: str, records: Mapping[str, list[Documented]]) -> list[Endpoint]:
    roles = documented_roles(document)
    columns = ["Operation", "Method", "Path", "Request", "Response"]
    rows = table_rows(chapter(document, "Endpoints"))
    assert rows[0] == columns
    endpoints = [endpoint(row, records, roles, document) for row in rows[1:]]
    unmatched = roles.keys() - {(each.methods, each.path) for each in endpoints}
    assert not unmatched, f"roles are given for {unmatched}, which is no operation"
    return endpoints


def endpoint(
    row: list[str],
    records: Mapping[str, list[Documented]],
    roles: Mapping[tuple[tuple[str, ...], str], tuple[str, ...]],
    document: str,
) -> Endpoint:
    _, method, path, request, response = row
    methods = tuple(word for word in re.findall(r"[A-Z]+", method) if word in METHODS)
    title, names = documented_request(request, records, document)
    wrapper = RESPONSE_WRAPPER.fullmatch(response)
    return Endpoint(
        methods,
        path,
        title,
        names,
        documented_response(response, title, names, records),
        wrapper[1] if wrapper else None,
        returns_list=response.startswith("array of "),
        roles=roles[methods, path],
    )


def documented_request(
    request: str, records: Mapping[str, list[Documented]], document: str
) -> tuple[str, tuple[str, ...]]:
    """Title of the record and its field names, as the Request cell gives them."""
    if reference := re.fullmatch(r"(\w+) fields \(see Resources\)", request):
        heading = re.search(rf"^### (.*) \({reference[1]}\)$", document, flags=re.MULTILINE)
        assert heading is not None, f"{reference[1]} is not among the resources"
        record = records[heading[1]]
        return heading[1], tuple(field.name for field in record if not field.output_only)
    if titled := re.fullmatch(r"(\w+): (.*)", request):
        return titled[1], tuple(field.name for field in from_prose(titled[2]))
    bare = re.sub(r"^optional fields |^.* fields \(|\)$", "", request)
    names = tuple(bare.split(", "))
    fitting = [
        title for title, record in records.items() if names == tuple(one.name for one in record)
    ]
    assert len(fitting) == 1, f"{request!r} is the field list of {fitting or 'no record'}"
    if request.startswith("optional fields "):
        assert not any(field.rules for field in records[fitting[0]]), f"{fitting[0]} is optional"
    return fitting[0], names


def documented_response(
    response: str,
    request_title: str,
    request_names: tuple[str, ...],
    records: Mapping[str, list[Documented]],
) -> str:
    """Title of the record that comes back."""
    if same := re.fullmatch(r"the same (\w+) fields plus ResponseStatus", response):
        assert COUNTS.index(same[1]) == len(request_names), f"{response!r} for {request_names}"
        return request_title
    if wrapper := RESPONSE_WRAPPER.fullmatch(response):
        return wrapper[2]
    words = re.sub(r"^array of | items, each with ResponseStatus$", "", response)
    return next(
        title
        for title in records
        if words in {title.lower(), title.lower().removesuffix(" record")}
    )


def documented_roles(document: str) -> dict[tuple[tuple[str, ...], str], tuple[str, ...]]:
    """Roles by methods and path; the requirement `not shown` is no role."""
    found: dict[tuple[tuple[str, ...], str], tuple[str, ...]] = {}
    for operation, requirement in table_rows(chapter(document, "Authentication"))[1:]:
        methods, path = operation.rsplit(" ", 1)
        match = re.fullmatch(r"(?:.*any of |role )(.+)", requirement)
        assert match or requirement == "requirement: not shown", requirement
        roles = tuple(match[1].split(", ")) if match else ()
        found[tuple(methods.split(" or ")), path] = roles
    return found


def chapter(document: str, heading: str) -> str:
    found = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", document, flags=re.MULTILINE | re.DOTALL)
    assert found is not None, f"the document has no chapter {heading}"
    return found[1]


def table_rows(text: str) -> list[list[str]]:
    """The rows of the tables in a text, header first, without the rule below it."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in rows if set("".join(row)) != {"-"}]
