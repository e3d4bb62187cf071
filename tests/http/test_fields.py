"""What is written into a head stays in its line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.http.fields import written


def test_lines_as_they_go_out() -> None:
    assert written({}) == b""
    assert written({"%s": "%d%%", "x": "%s"}) == b"%s: %d%%\r\nx: %s\r\n"
    assert written({"accept": "*/*", "X-Name": "Zoë\tx"}) == "accept: */*\r\nX-Name: Zoë\tx\r\n".encode()


@pytest.mark.parametrize("bad", ["\r", "\n", "\r\n", "\0", "\x01", "\x1f", "\x7f", "\ud800"])
@pytest.mark.parametrize("around", ["{}", "sk-hidden{}", "{}x: y"])
def test_what_no_header_can_hold_is_refused_and_not_shown(bad: str, around: str) -> None:
    value = around.format(bad)
    with pytest.raises(ValueError, match="cannot be sent") as caught:
        written({"accept": "*/*", "authorization": value, "x": "y"})
    assert "sk-hidden" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("name", ["", " ", "a b", " a", "a:", "a\r\nb", "é", "a\0"])
def test_a_name_is_a_token(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        written({name: "x"})
    with pytest.raises(ValueError, match="name"):
        written({"accept": "*/*", name: "x"})


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=20), max_size=5))
def test_there_are_as_many_lines_as_fields_or_none(fields: dict[str, str]) -> None:
    try:
        lines = written(fields).split(b"\r\n")
    except ValueError:
        return
    assert lines.pop() == b""
    assert lines == [f"{name}: {value}".encode() for name, value in fields.items()]
