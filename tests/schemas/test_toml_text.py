import pytest

from schemas.toml_text import MOST_NESTED, key_lines, read_toml


def test_lines_are_those_of_the_file() -> None:
    text = 'a = """\n[b]\nc = 1\n"""\n\n[d]  # e\nf = [\n 1,\n]\n[[g]]\nh.i = 1\n[[g]]\nh = 2'
    assert key_lines(text) == {
        ("a",): 1,
        ("d",): 6,
        ("d", "f"): 7,
        ("g",): 10,
        ("g", 0): 10,
        ("g", 0, "h"): 11,
        ("g", 0, "h", "i"): 11,
        ("g", 1): 12,
        ("g", 1, "h"): 13,
    }


def test_signs_within_texts_and_comments_mean_nothing() -> None:
    text = (
        "a = '['  # ]\n# [ {\n\"b\" = \"\\\"[\"\nc = '''\n[\n''''\n"
        'd = """\\"""[\n"""""\r\n'
        'e = [ # [\n  "]", { f = 1 },\n]\ng = """"""\nh = 1'
    )
    assert key_lines(text) == {
        ("a",): 1, ("b",): 3, ("c",): 4, ("d",): 7, ("e",): 9, ("g",): 12, ("h",): 13,
    }  # fmt: skip


@pytest.mark.long
def test_a_list_of_many_lines_is_read_once() -> None:
    """Each line that might end the list was a reason to read all of it again."""
    values = "".join(f'  "{number}",\n' for number in range(20_000))
    assert key_lines(f"a = [\n{values}]\nb = 1") == {("a",): 1, ("b",): 20_003}


def test_brackets_in_the_name_of_a_section_are_signs_of_it() -> None:
    text = 'a = 1\n[b."]"]\nc = 1\n[[ "[[d]]" . e ]] # ]\nf = 1\n["g\\nh"]\n[[\'[\']]'
    assert key_lines(text) == {
        ("a",): 1, ("b.]",): 2, ("b.]", "c"): 3, ("[[d]].e",): 4, ("[[d]].e", 0): 4,
        ("[[d]].e", 0, "f"): 5, ("g\nh",): 6, ("[",): 7, ("[", 0): 7,
    }  # fmt: skip
    read_toml(text)


DEEP = ".".join("a" * MOST_NESTED)
NESTED = [
    f"[{DEEP}]",
    f"{DEEP}.a = 1",
    f"[[{DEEP}]]",
    f"a = {'[' * MOST_NESTED}{']' * MOST_NESTED}",
    f"a = {'{a = ' * MOST_NESTED}1{'}' * MOST_NESTED}",
    f"[{'.'.join('a' * 900)}]\nb = 1",
    f"a = {'[' * 2000}{']' * 2000}",
]


@pytest.mark.parametrize("text", NESTED, ids=range(len(NESTED)))
def test_what_is_nested_deeper_than_its_readers_go_is_refused(text: str) -> None:
    assert read_toml(f"{DEEP} = 1")
    assert max(key_lines(f"{DEEP} = 1"), key=len) == ("a",) * MOST_NESTED
    with pytest.raises(ValueError, match="nested too deeply: 32 within each other"):
        read_toml(text)
