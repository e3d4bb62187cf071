import copy
import pickle

import msgspec
import pytest

from dragoman.credentials.secret import Secret

KEY = Secret("sk-very-secret")


@pytest.mark.parametrize("shown", [str(KEY), repr(KEY), f"{KEY}", f"{KEY!r}", f"{KEY:>20}", f"{[KEY]}"])
def test_text_forms_show_the_fingerprint_and_no_part_of_the_secret(shown: str) -> None:
    assert KEY.fingerprint in shown
    assert "sk-" not in shown
    assert "very" not in shown


def test_only_reveal_returns_the_secret() -> None:
    assert KEY.reveal() == "sk-very-secret"
    with pytest.raises(TypeError):
        pickle.dumps(KEY)
    with pytest.raises(TypeError):
        msgspec.json.encode(KEY)
    with pytest.raises(TypeError):
        vars(KEY)


def test_equality_compares_the_secret() -> None:
    assert Secret("sk-very-secret") == KEY
    assert Secret("sk-other") != KEY
    assert KEY != "sk-very-secret"
    assert {KEY, Secret("sk-very-secret")} == {KEY}
    assert copy.deepcopy(KEY) is KEY
    assert copy.copy(KEY) is KEY


def test_lone_surrogates_are_no_error() -> None:
    assert Secret("caf\udce9").fingerprint != Secret("caf\ud800").fingerprint


def test_an_empty_secret_is_false() -> None:
    assert not Secret("")
    assert KEY
