from schemas.toml_text import key_lines


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


def test_a_list_of_many_lines_is_read_once() -> None:
    """Each line that might end the list was a reason to read all of it again."""
    values = "".join(f'  "{number}",\n' for number in range(20_000))
    assert key_lines(f"a = [\n{values}]\nb = 1") == {("a",): 1, ("b",): 20_003}
