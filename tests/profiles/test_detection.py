"""Client detection: several signs together identify a client, never one alone."""

import pytest
from multidict import CIMultiDict
from support.anew import anew
from support.captures import CAPTURES, Capture
from support.requests import wire

from dragoman.model.messages import Message, Request, Text, Tool
from dragoman.profiles import AGENTS, PROFILES, SDKS, Profile, head_clues
from dragoman.profiles import detect as detect_by
from dragoman.protocols.registry import CLIENTS, protocol


def detect(path: str, headers: CIMultiDict[str], request: Request) -> Profile:
    return detect_by(head_clues(path, headers), request)


def detected(capture: Capture, headers: dict[str, str] | None = None) -> str:
    path, body = capture.asking("m")
    request = protocol(capture.protocol).read_request(wire(body), path)
    return detect(path, CIMultiDict(capture.headers if headers is None else headers), request).name


@pytest.mark.parametrize("name", CAPTURES)
def test_a_known_client_is_detected(name: str) -> None:
    capture = CAPTURES[name]
    assert detected(capture) == capture.profile
    assert capture.protocol in PROFILES[capture.profile].protocols


@pytest.mark.parametrize("name", [name for name, capture in CAPTURES.items() if capture.tool is not None])
def test_an_agent_is_detected_without_its_headers(name: str) -> None:
    """Proxies may replace headers. An SDK has no other sign."""
    capture = CAPTURES[name]
    found = detected(capture, {"user-agent": "curl/8"})
    assert found == ("unknown" if PROFILES[capture.profile] in SDKS else capture.profile)


def bare(*tools: str, prompt: str = "") -> Request:
    said = (Message("system", (Text(prompt),)),) if prompt else ()
    return Request(model="m", messages=said, tools=tuple(Tool(name=name) for name in tools))


@pytest.mark.parametrize("profile", [name for name, profile in PROFILES.items() if profile.signs.headers])
def test_one_header_proves_nothing(profile: str) -> None:
    for name, parts in PROFILES[profile].signs.headers.items():
        for part in parts:
            headers = CIMultiDict({name: f"{part}1.0"})
            assert detect("/v1/messages", headers, bare()).name == "unknown"


def test_two_tools_prove_nothing() -> None:
    assert detect("/v1/messages", CIMultiDict(), bare("Bash", "Read")).name == "unknown"
    assert detect("/v1/messages", CIMultiDict(), bare("Bash", "Read", "Edit")).name != "unknown"


def test_the_path_of_cursor_is_enough() -> None:
    assert detect("/cursor/chat/completions", CIMultiDict(), bare()).name == "cursor"
    assert detect("/v1/chat/completions", CIMultiDict(), bare()).name == "unknown"


def test_header_names_are_case_insensitive() -> None:
    headers = CIMultiDict({"User-Agent": "Kilo-Code/7.7.7", "X-Title": "Kilo Code"})
    assert detect("/v1/messages", headers, bare()).name == "kilo"


def test_only_the_beginning_of_a_prompt_is_read() -> None:
    mention = "You help. " * 100 + "You are Qwen Code"
    tools = ("run_shell_command", "todo_write")
    assert detect("/v1/messages", CIMultiDict(), bare(*tools, prompt=mention)).name == "unknown"
    assert detect("/v1/messages", CIMultiDict(), bare(*tools, prompt=mention[-17:])).name == "qwen-code"


def test_a_changed_request_is_detected() -> None:
    """Without the original body there are fewer signs, but enough."""
    capture = CAPTURES["codex"]
    path, body = capture.asking("m")
    request = protocol(capture.protocol).read_request(wire(body), path)
    assert request.raw is not None
    assert detect(path, CIMultiDict(capture.headers), anew(request)).name == "codex"


def test_every_client_of_the_table_has_a_capture() -> None:
    seen = {capture.profile for capture in CAPTURES.values()}
    assert {profile.name for profile in (*AGENTS, *SDKS)} == seen


def test_profiles_name_existing_protocols() -> None:
    for name, profile in PROFILES.items():
        assert set(profile.protocols) <= set(CLIENTS), name
        assert set(profile.keepalives) <= set(profile.protocols), name
        # Law 29: a keepalive is a complete frame.
        assert all(frame.endswith(b"\n\n") for frame in profile.keepalives.values()), name
