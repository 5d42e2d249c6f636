import re
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.derived import jsv
from schemas.derived.jsv import Plain
from tests.service.transcripts import EXCHANGES

CANONICAL = [
    ("[]", []),
    ("{}", {}),
    ("[Client]", ["Client"]),
    ('[Client,"x,y"]', ["Client", "x,y"]),
    ('{k:"v,w"}', {"k": "v,w"}),
    ("[{Name:a,FileSize:1}]", [{"Name": "a", "FileSize": "1"}]),
    ('[""]', [""]),
    ('{"":""}', {"": ""}),
    ('["he said ""hi"""]', ['he said "hi"']),
    ('[""""]', ['"']),
    ('["a:b","{","}","[","]"]', ["a:b", "{", "}", "[", "]"]),
    ('["a\rb","a\nb","a\r\nb"]', ["a\rb", "a\nb", "a\r\nb"]),
    ('{"a:b":c}', {"a:b": "c"}),
    ("[ a ,b ]", [" a ", "b "]),
    ("[a\\nb]", ["a\\nb"]),
    ("['single',a;b|c\td,=1+1]", ["'single'", "a;b|c\td", "=1+1"]),
    ("[null,True,1.50]", ["null", "True", "1.50"]),
    ("[[a],{k:[b]},[]]", [["a"], {"k": ["b"]}, []]),
    ("été €", "été €"),
    ('"a,b"', "a,b"),
]


@pytest.mark.parametrize(("text", "value"), CANONICAL)
def test_the_service_writes_and_we_read_the_same_text(text: str, value: jsv.Value) -> None:
    assert jsv.read(text) == value
    assert jsv.write(value) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('["Client"]', ["Client"]),
        ('{"k":"v"}', {"k": "v"}),
        ("{ActionTimestamp:2026-01-02T03:04:05Z}", {"ActionTimestamp": "2026-01-02T03:04:05Z"}),
    ],
)
def test_what_is_not_written_so_is_read_where_it_can_mean_one_thing(
    text: str, value: jsv.Value
) -> None:
    assert jsv.read(text) == value


@pytest.mark.parametrize(
    ("text", "character"),
    [
        ("", 1),
        ("[", 2),
        ("{", 2),
        ("[a", 3),
        ("{a", 3),
        ("{a:", 4),
        ("{a:b", 5),
        ("[a]]", 4),
        ("{a:b}}", 6),
        ("[a]x", 4),
        ("[a] ", 4),
        ("a,b", 2),
        ("]", 1),
        ("[a,]", 4),
        ("[,a]", 2),
        ("[a,,b]", 4),
        ("{a:}", 4),
        ("{:a}", 2),
        ("{a:b,}", 6),
        ("{a:b,,c:d}", 6),
        ("{a}", 3),
        ("{a,b}", 3),
        ("[a}", 3),
        ("{a:b]", 5),
        ('["a"b]', 5),
        ('["a" ]', 5),
        ('["a" "b"]', 5),
        ('[ "a"]', 3),
        ('[a"b]', 3),
        ('["a]', 2),
        ('["a""]', 2),
        ('{"a:b}', 2),
        ('{"a"b:c}', 5),
        ("[a{b}]", 3),
        ("[a\nb]", 3),
        ("[{a:b} ,c]", 7),
        ("{a:b,a:c}", 6),
        ('{a:b,"a":c}', 6),
    ],
)
def test_anything_ill_formed_is_refused_with_its_place(text: str, character: int) -> None:
    with pytest.raises(ValueError, match=f"at character {character}:"):
        jsv.read(text)


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


def test_depth_is_bounded_on_both_sides() -> None:
    deepest = nested(jsv.DEEPEST + 1)
    assert jsv.write(jsv.read(deepest)) == deepest
    for levels in (jsv.DEEPEST + 2, 100_000):
        with pytest.raises(ValueError, match="deeper"):
            jsv.read(nested(levels))
    with pytest.raises(ValueError, match="deeper"):
        jsv.write([jsv.read(deepest)])


def test_length_is_bounded() -> None:
    assert len(str(jsv.read("a" * jsv.MOST_CHARACTERS))) == jsv.MOST_CHARACTERS
    with pytest.raises(ValueError, match="limit"):
        jsv.read("a" * (jsv.MOST_CHARACTERS + 1))


def test_hostile_quotes_cost_memory_of_their_own_size() -> None:
    text = "[" + '"' * 1_000_000 + "a"
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="JSV"):
            jsv.read(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 * len(text)


def test_members_without_a_value_are_left_out_and_elements_without_one_refused() -> None:
    assert jsv.write({"a": None, "b": {"c": None}}) == "{b:{}}"
    with pytest.raises(ValueError, match="NoneType"):
        jsv.write(["a", None])
    with pytest.raises(ValueError, match="float"):
        jsv.write(1.5)  # type: ignore[arg-type]


def recorded(name: str) -> str:
    body: str = EXCHANGES[name]["response"]["body"]
    return body


def test_the_recorded_form_reply_is_written_byte_for_byte() -> None:
    files: jsv.Writable = [{"Name": "f,1", "FileSize": "3"}]
    record: dict[str, jsv.Writable] = {
        "Id": 1,
        "CampaignActionsId": 2,
        "CustomersId": None,
        "ActionTimestamp": Plain("2026-01-02T03:04:05Z"),
        "FormMetaResponses": {"Comments": 'he said "hi"', "CampaignActionFiles": files},
        "FormMetaCustomResponses": {"a": "x,y"},
        "FormMetaFilesResponses": files,
        "FormMetaComments": 'a, "b"',
    }
    assert jsv.write({"CampaignActionsFormResponses": record}) == recorded("form-jsv")
    cell = jsv.write(record).replace('"', '""')
    assert recorded("form-csv").splitlines()[1] == f'"{cell}",'


def test_the_recorded_error_cell_is_read_and_written_back() -> None:
    row = recorded("tone-csv-bare-empty").splitlines()[1]
    cell = re.fullmatch(r',,,"(.*)"', row)
    assert cell is not None
    text = cell[1].replace('""', '"')
    message = "'Name' must not be empty."
    error: dict[str, jsv.Writable] = {
        "ErrorCode": "NotNull",
        "FieldName": "Name",
        "Message": message,
    }
    status: dict[str, jsv.Writable] = {
        "ErrorCode": "NotNull",
        "Message": message,
        "Errors": [error | {"Meta": {"PropertyName": "Name"}}],
    }
    assert jsv.read(text) == status
    assert jsv.write(status) == text


def test_a_boolean_is_capitalised() -> None:
    written = jsv.write([{"Data": "a,b", "HasError": True, "BatchId": 1}])
    assert written == '[{Data:"a,b",HasError:True,BatchId:1}]'


texts = st.text(st.sampled_from("\":,{}[]\r\n\\ 'ab1é\x00") | st.characters(), max_size=12)
values = st.recursive(
    texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_what_was_written_is_read_back(value: jsv.Value) -> None:
    assert jsv.read(jsv.write(value)) == value


@given(st.text(st.sampled_from('":,{}[]\r\nab'), max_size=24))
def test_what_was_read_is_one_value_for_good(text: str) -> None:
    try:
        value = jsv.read(text)
    except ValueError as refusal:
        assert str(refusal).startswith("JSV is ill-formed at character ")  # noqa: PT017
        return
    assert jsv.read(jsv.write(value)) == value
