"""The requests that agents send for themselves, told from those of their users by recorded requests."""

import pytest
from multidict import CIMultiDict
from support.captures import CAPTURES
from support.requests import wire

from dragoman.profiles import detect, head_clues, in_background
from dragoman.protocols.registry import protocol

IN_BACKGROUND = {"claude-code title", "opencode title", "gemini-cli router"}


@pytest.mark.parametrize("name", CAPTURES)
@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "gpt-5", "gemini-3-pro"])
def test_only_background_requests_are_in_the_background(name: str, model: str) -> None:
    capture = CAPTURES[name]
    path, body = capture.asking(model)
    request = protocol(capture.protocol).read_request(wire(body), path)
    profile = detect(head_clues(path, CIMultiDict(capture.headers)), request)
    assert in_background(profile, request) is (name in IN_BACKGROUND)
