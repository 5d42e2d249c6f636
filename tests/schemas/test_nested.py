import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemas.cells.reading import Unread
from schemas.derived import jsv
from schemas.derived.nested import cell_text, json_text, read_nested, read_tree
from schemas.field import Field, Kind
from schemas.reasons import REASONS
from schemas.tables import CLIENT_REGISTRATION, FORM_RESPONSE, RESPONSE_STATUS, TABLES

ROLES = CLIENT_REGISTRATION.by_name["Roles"]
RESULTS = FORM_RESPONSE.by_name["FormMetaResponses"]
FILES = FORM_RESPONSE.by_name["FormMetaFilesResponses"]
ANSWERS = FORM_RESPONSE.by_name["FormMetaCustomResponses"]
META = RESPONSE_STATUS.by_name["Meta"]
ERRORS = RESPONSE_STATUS.by_name["Errors"]

READ = [
    (ROLES, "[]", "[]"),
    (ROLES, "[Client]", '["Client"]'),
    (ROLES, ' ["Client", "x,y"] ', '["Client","x,y"]'),
    (ROLES, '[Client,"x,y"]', '["Client","x,y"]'),
    (ROLES, " [Client]\t", '["Client"]'),
    (ROLES, "[ Client]", '[" Client"]'),
    (ROLES, '[""]', '[""]'),
    (ROLES, '["b","a","b"]', '["b","a","b"]'),
    (ROLES, "[01,a]", '["01","a"]'),
    (ROLES, r"[C:\new]", r'[ "C:\\new"]'),
    (ROLES, r'[a,"C:\new"]', r'["a","C:\\new"]'),
    (ROLES, r'["a","C:\\new"]', r'["a","C:\\new"]'),
    (ROLES, r'[ "C:\\new"]', r'[ "C:\\new"]'),
    (ROLES, r'["\u00e9\ud83d\ude00\/"]', '["é😀/"]'),
    (ROLES, '["\x7f"]', '["\x7f"]'),
    (ROLES, r'["\u001F"]', r'["\u001f"]'),
    (META, "{}", "{}"),
    (META, '{b:1,a:"v,w"}', '{"a":"v,w","b":"1"}'),
    (META, '{"b": "1", "a": ""}', '{"a":"","b":"1"}'),
    (META, '{"a":"1","A":"2"}', '{"A":"2","a":"1"}'),
    (ANSWERS, '{"a":null,"b":"x"}', '{"a":null,"b":"x"}'),
    (RESULTS, "{}", "{}"),
    (RESULTS, '{Comments:"a,b",CustomFormResults:x}', '{"CustomFormResults":"x","Comments":"a,b"}'),
    (RESULTS, '{"comments":"c","customFormResults":null}', '{"Comments":"c"}'),
    (
        RESULTS,
        '{CampaignActionFiles:[{FileSize:3,Name:"f,1"}]}',
        '{"CampaignActionFiles":[{"Name":"f,1","FileSize":"3"}]}',
    ),
    (FILES, "[{Name:a,FileSize:1},{}]", '[{"Name":"a","FileSize":"1"},{}]'),
    (
        ERRORS,
        "[{ErrorCode:NotNull,Meta:{PropertyName:Name}}]",
        '[{"ErrorCode":"NotNull","Meta":{"PropertyName":"Name"}}]',
    ),
]


@pytest.mark.parametrize(("field", "text", "canonical"), READ)
def test_a_cell_is_read_as_canonical_json(field: Field, text: str, canonical: str) -> None:
    assert read_nested(field, text) == canonical
    assert read_nested(field, canonical) == canonical


REFUSED = [
    (ROLES, "", "a value is missing"),
    (ROLES, "Client", "Roles is a text where a list is expected"),
    (ROLES, '"Client"', "Roles is a text where a list"),
    (ROLES, "null", "Roles is null where a list"),
    (ROLES, "12", "Roles is a number where a list"),
    (ROLES, "{}", "Roles is an object where a list"),
    (ROLES, "[1]", "Roles[0] is a number where a text"),
    (ROLES, '["a",true]', "Roles[1] is a boolean where a text"),
    (ROLES, '["a",null]', "Roles[1] is null where a text"),
    (ROLES, '["a",NaN]', "Roles[1] is a number where a text"),
    (ROLES, "[-Infinity]", "Roles[0] is a number where a text"),
    (ROLES, '[["a"]]', "Roles[0] is a list where a text"),
    (ROLES, "[[a]]", "Roles[0] is a list where a text"),
    (ROLES, '["a"', "JSON is ill-formed at character 5"),
    (ROLES, '["a"] x', "JSON is ill-formed at character 7"),
    (ROLES, "['a'", "JSV is ill-formed at character 5"),
    (ROLES, "[a]]", "JSV is ill-formed at character 4"),
    (ROLES, '["a\nb"x]', "JSON is ill-formed"),
    (ROLES, r'["C:\new"]', "JSON and JSV differ"),
    (ROLES, '["a\x00"]', "NUL"),
    (ROLES, "[a\x00]", "NUL"),
    (ROLES, r'["a","\u0000"]', "NUL"),
    (ROLES, '["\ud800"]', "surrogate"),
    (ROLES, r'["a","\ud800"]', "surrogate"),
    (ROLES, r'["a","\ude00\ud83d"]', "surrogate"),
    (META, r'{"\u0000":"a"}', "NUL"),
    (META, "[]", "Meta is a list where a map of texts"),
    (META, '{"a":null}', 'Meta["a"] is null where a text'),
    (META, '{"a":1}', 'Meta["a"] is a number where a text'),
    (META, '{"a":{}}', 'Meta["a"] is an object where a text'),
    (META, '{"a":"1","a":"1"}', "named twice"),
    (META, "{a:1,a:1}", "named twice"),
    (META, "{a:}", "a value is missing"),
    (ANSWERS, '{"a":false}', "a boolean where a text"),
    (RESULTS, "[]", "is a list where a campaign_action_form_results record"),
    (RESULTS, '{"Comments":1}', "FormMetaResponses.Comments is a number"),
    (RESULTS, '{"Comment":"c"}', 'member "Comment" is not a field of campaign_action_form_results'),
    (RESULTS, '{"Comments":"c","comments":"c"}', "member Comments is given twice"),
    (RESULTS, "{Comments:[a]}", "FormMetaResponses.Comments is a list where a text"),
    (RESULTS, "{CampaignActionFiles:[{Size:1}]}", '"Size" is not a field'),
    (FILES, '[{"Name":"a"},{"FileSize":1}]', "FormMetaFilesResponses[1].FileSize is a number"),
    (FILES, "[a]", "FormMetaFilesResponses[0] is a text where a campaign_action_file record"),
    (FILES, "[null]", "FormMetaFilesResponses[0] is null"),
]


@pytest.mark.parametrize(("field", "text", "detail"), REFUSED)
def test_anything_else_is_refused_with_its_place(field: Field, text: str, detail: str) -> None:
    unread = read_nested(field, text)
    assert isinstance(unread, Unread), unread
    assert unread.code == {Kind.MAP: "Map", Kind.LIST: "List"}.get(field.kind, "Record")
    assert detail in unread.facts["detail"]
    # The reason's sentence can be written from what is handed on.
    facts = {"field": field.name, "value": text, "of": field.of}
    assert REASONS[unread.code].message(**facts, **unread.facts)


@pytest.mark.parametrize("bracket", ["[", '{"a":'])
def test_depth_ends_in_a_refusal(bracket: str) -> None:
    close = "]" if bracket == "[" else "}"
    for levels in (jsv.DEEPEST + 1, 200_000):
        text = bracket * levels + '""' + close * levels
        unread = read_nested(ROLES, text)
        assert isinstance(unread, Unread)
        assert "deep" in unread.facts["detail"]


def test_brackets_inside_texts_are_no_depth() -> None:
    brackets = "[{" * 100
    escaped = '"' + brackets + "\\"
    for text in ([brackets], [escaped, "a"], [brackets + "]"]):
        canonical = json_text(list(text))
        assert read_nested(ROLES, canonical) == canonical
        assert read_nested(ROLES, jsv.write(text)) in (canonical, cell_text(canonical))


def test_length_ends_in_a_refusal() -> None:
    longest = '["' + "a" * (jsv.MOST_CHARACTERS - 4) + '"]'
    assert len(longest) == jsv.MOST_CHARACTERS
    assert read_nested(ROLES, longest) == longest
    unread = read_nested(ROLES, '["' + "a" * jsv.MOST_CHARACTERS + '"]')
    assert isinstance(unread, Unread)
    assert "limit" in unread.facts["detail"]


def test_a_long_name_is_cut_in_the_problem() -> None:
    unread = read_nested(RESULTS, json.dumps({"x" * 1000: "a"}))
    assert isinstance(unread, Unread)
    assert len(unread.facts["detail"]) < 150


def test_numbers_of_any_length_keep_their_digits() -> None:
    digits = "9" * 10_000
    assert read_tree(f'{{"a":{digits}.10,"b":1E+5}}') == {"a": digits + ".10", "b": "1E+5"}


def test_every_nested_field_is_of_a_kind_that_can_be_read() -> None:
    nested = {
        field.of
        for table in TABLES.values()
        for field in table
        if field.kind in {Kind.LIST, Kind.RECORD} and field.of != "string"
    }
    for name in nested:
        assert name is not None
        for field in TABLES[name]:
            empty = {Kind.STRING: '""', Kind.MAP: "{}", Kind.RECORD: "{}"}.get(field.kind, "[]")
            member = f'{{"{field.name}":{empty}}}'
            of_this = Field("It", Kind.RECORD, of=name)
            assert read_nested(of_this, member) == member


sound = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
texts = st.text(st.sampled_from("\":,{}[]\r\n\\/bnu0 '") | sound, max_size=10)
lists = st.lists(texts, max_size=4)
maps = st.dictionaries(texts, texts, max_size=4)


@given(lists)
@example([" "])
@example(["\t"])
@example([])
def test_a_list_is_the_same_in_either_form(value: list[str]) -> None:
    # `[ ]` would be a list of one blank in JSV.
    canonical = read_nested(ROLES, "[ " + json.dumps(value)[1:] if value else "[]")
    assert isinstance(canonical, str)
    assert json.loads(canonical) == value
    assert read_nested(ROLES, canonical) == canonical
    assert not_another(read_nested(ROLES, jsv.write(value)), canonical)


@given(maps)
def test_a_map_is_the_same_in_either_form_and_any_order(value: dict[str, str]) -> None:
    canonical = read_nested(META, "{ " + json.dumps(value, ensure_ascii=False)[1:])
    assert isinstance(canonical, str)
    assert json.loads(canonical) == value
    assert read_nested(META, canonical) == canonical
    turned = dict(reversed(value.items()))
    assert read_nested(META, "{ " + json.dumps(turned)[1:]) == canonical
    assert not_another(read_nested(META, jsv.write(value)), canonical)


def not_another(read: str | Unread, canonical: str) -> bool:
    """Whether the JSV text was read as this very value, or refused because JSON reads another."""
    if isinstance(read, Unread):
        return (
            re.search("differ|(number|boolean|null) where a text", read.facts["detail"]) is not None
        )
    return read == canonical


@given(st.text(st.sampled_from('":,{}[]\\nu0ab 1-.eNtrue'), max_size=20))
def test_whatever_is_read_stays_what_it_is(text: str) -> None:
    for field in (ROLES, META, FILES):
        canonical = read_nested(field, text)
        if isinstance(canonical, str):
            assert read_nested(field, canonical) == canonical
