"""The agent against recorded answers: no model, no key, no network."""

import anthropic
import pytest
from weather_agent import answer

QUESTION = "What is the weather in Rome, for 3 days?"


@pytest.fixture(autouse=True)
def replayed(dragoman_replay, monkeypatch):
    for name, value in dragoman_replay.env.items():
        monkeypatch.setenv(name, value)


def test_the_agent_looks_up_the_weather():
    assert "Rome: sunny for 3 days" in answer(QUESTION)


@pytest.mark.dragoman(fault="misnamed:1")
def test_a_misnamed_argument_does_not_matter():
    assert "Rome: sunny for 3 days" in answer(QUESTION)


@pytest.mark.dragoman(fault="ratelimit:1")
def test_the_agent_waits_when_it_is_told_to():
    assert "Rome: sunny for 3 days" in answer(QUESTION)


@pytest.mark.dragoman(fault="cut@3")
def test_a_cut_answer_is_an_error_and_not_half_a_call():
    with pytest.raises(anthropic.APIError):
        answer(QUESTION)
