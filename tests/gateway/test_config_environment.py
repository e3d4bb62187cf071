"""Without a config file, the API keys in the environment define the upstreams."""

import pytest

from dragoman.config import ConfigError, from_environment
from dragoman.routing.router import route


def goes_to(env: dict[str, str], model: str) -> str:
    return route(from_environment(env), model)[0].key


ALL = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o", "GEMINI_API_KEY": "g", "OPENROUTER_API_KEY": "r"}


@pytest.mark.parametrize(
    ("model", "target"),
    [
        ("claude-sonnet-5-5", "anthropic/claude-sonnet-5-5"),
        ("gpt-5.6-sol", "openai/gpt-5.6-sol"),
        ("o4-mini", "openai/o4-mini"),
        ("gemini-3-pro", "gemini/gemini-3-pro"),
        ("models/gemini-3-pro", "gemini/gemini-3-pro"),
        ("openrouter/z-ai/glm-5", "openrouter/z-ai/glm-5"),
        ("something-else", "anthropic/something-else"),
        ("opus-like", "anthropic/opus-like"),
    ],
)
def test_each_model_family_goes_to_its_provider(model: str, target: str) -> None:
    assert goes_to(ALL, model) == target


def test_one_key_serves_everything() -> None:
    assert goes_to({"GROQ_API_KEY": "k"}, "claude-sonnet-5") == "groq/claude-sonnet-5"


def test_openai_gets_responses_and_compatible_servers_get_chat() -> None:
    own = from_environment({"OPENAI_API_KEY": "k"}).upstreams["openai"]
    assert own.url("/v1/responses") == "https://api.openai.com/v1/responses"
    assert own.protocol == "openai-responses"
    env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:1234/v1"}
    other = from_environment(env).upstreams["openai"]
    assert (other.protocol, other.facts.chat_compatible) == ("openai-chat", True)
    assert (other.credential.name, other.base_url) == ("OPENAI_API_KEY", "http://127.0.0.1:1234")
    same = from_environment({"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "https://api.openai.com/v1/"})
    assert same.upstreams["openai"].protocol == "openai-responses"


def test_a_known_provider_in_openais_variables_keeps_its_facts() -> None:
    env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "https://api.deepseek.com"}
    assert from_environment(env).upstreams["openai"].facts.reasoning_field == "reasoning_content"


def test_a_server_without_a_key() -> None:
    env = {"OPENAI_BASE_URL": "http://127.0.0.1:8000/v1"}
    assert from_environment(env).upstreams["openai"].credential.kind == "none"


PROXY = {
    "OPENAI_API_KEY": "k",
    "OPENAI_BASE_URL": "https://example.com/v1",
    "BIG_MODEL": "z-ai/glm-5",
    "SMALL_MODEL": "qwen-small",
}


@pytest.mark.parametrize(
    ("model", "target"),
    [
        ("claude-haiku-4-5-20251001", "openai/qwen-small"),
        ("claude-sonnet-5-5", "openai/z-ai/glm-5"),
        ("claude-opus-5", "openai/z-ai/glm-5"),
        ("claude-fable-5", "openai/z-ai/glm-5"),
        ("gpt-5-mini", "openai/qwen-small"),
        ("deepseek-v4", "openai/deepseek-v4"),
    ],
)
def test_the_model_sizes_of_claude_code_proxy(model: str, target: str) -> None:
    assert goes_to(PROXY, model) == target
    assert goes_to({**PROXY, "ANTHROPIC_API_KEY": "a"}, model) == target


def test_the_middle_size_and_openai_itself() -> None:
    env = {"OPENAI_API_KEY": "k", "BIG_MODEL": "gpt-6", "MIDDLE_MODEL": "gpt-5", "SMALL_MODEL": "gpt-5-nano"}
    assert goes_to(env, "claude-sonnet-5") == "openai/gpt-5"
    assert goes_to(env, "gpt-5-mini") == "openai/gpt-5-mini"


def test_sizes_without_openai() -> None:
    env = {
        "GROQ_API_KEY": "k",
        "GEMINI_API_KEY": "g",
        "BIG_MODEL": "groq/llama",
        "SMALL_MODEL": "gemini-3-flash",
    }
    assert goes_to(env, "claude-opus-5") == "groq/llama"
    assert goes_to(env, "claude-haiku-5") == "gemini/gemini-3-flash"


def test_azure_needs_its_address() -> None:
    env = {"AZURE_OPENAI_API_KEY": "k", "GROQ_API_KEY": "k"}
    assert [*from_environment(env).upstreams] == ["groq"]
    azure = from_environment({**env, "AZURE_OPENAI_ENDPOINT": "https://r.openai.azure.com/"}).upstreams[
        "azure"
    ]
    assert azure.url("/v1/responses") == "https://r.openai.azure.com/openai/v1/responses"
    assert azure.auth == "api-key"


def test_another_variable_for_the_same_key() -> None:
    assert from_environment({"GOOGLE_API_KEY": "k"}).upstreams["gemini"].credential.name == "GOOGLE_API_KEY"


@pytest.mark.parametrize("env", [{}, {"ANTHROPIC_API_KEY": " "}, {"HF_TOKEN": "k"}, {"BIG_MODEL": "x"}])
def test_no_keys_at_all_is_an_error_with_a_fix(env: dict[str, str]) -> None:
    with pytest.raises(
        ConfigError,
        match=r"run `dragoman init` .* or set a key such as ANTHROPIC_API_KEY, ",
    ):
        from_environment(env)


def test_a_bad_address_in_the_environment() -> None:
    with pytest.raises(ConfigError, match=r"^the environment: \[upstreams.openai\] base_url must begin with"):
        from_environment({"OPENAI_BASE_URL": "localhost:80"})
    with pytest.raises(ConfigError, match="would call itself"):
        from_environment({"OPENAI_BASE_URL": "http://127.0.0.1:4545/v1"})
