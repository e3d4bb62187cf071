"""The table of known providers: addresses, protocols, facts and keys."""

import pytest

from dragoman.config import ConfigError, loads
from dragoman.config.providers import longest_answers, providers
from dragoman.protocols.registry import upstreams

ENDPOINTS = {
    "anthropic": ("anthropic", "https://api.anthropic.com/v1/messages"),
    "openai": ("openai-responses", "https://api.openai.com/v1/responses"),
    "gemini": ("gemini", "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent"),
    "openrouter": ("openai-chat", "https://openrouter.ai/api/v1/chat/completions"),
    "deepseek": ("openai-chat", "https://api.deepseek.com/v1/chat/completions"),
    "mistral": ("openai-chat", "https://api.mistral.ai/v1/chat/completions"),
    "groq": ("openai-chat", "https://api.groq.com/openai/v1/chat/completions"),
    "xai": ("openai-chat", "https://api.x.ai/v1/chat/completions"),
    "moonshot": ("openai-chat", "https://api.moonshot.ai/v1/chat/completions"),
    "zai": ("openai-chat", "https://api.z.ai/api/paas/v4/chat/completions"),
    "minimax": ("anthropic", "https://api.minimax.io/anthropic/v1/messages"),
    "together": ("openai-chat", "https://api.together.ai/v1/chat/completions"),
    "fireworks": ("openai-chat", "https://api.fireworks.ai/inference/v1/chat/completions"),
    "cerebras": ("openai-chat", "https://api.cerebras.ai/v1/chat/completions"),
    "huggingface": ("openai-chat", "https://router.huggingface.co/v1/chat/completions"),
    "nvidia": ("openai-chat", "https://integrate.api.nvidia.com/v1/chat/completions"),
    "dashscope": ("openai-chat", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1/chat/completions"),
    "perplexity": ("openai-chat", "https://api.perplexity.ai/chat/completions"),
    "deepinfra": ("openai-chat", "https://api.deepinfra.com/v1/openai/chat/completions"),
    "sambanova": ("openai-chat", "https://api.sambanova.ai/v1/chat/completions"),
    "nebius": ("openai-chat", "https://api.tokenfactory.nebius.com/v1/chat/completions"),
    "siliconflow": ("openai-chat", "https://api.siliconflow.com/v1/chat/completions"),
    "baseten": ("openai-chat", "https://inference.baseten.co/v1/chat/completions"),
    "friendli": ("openai-chat", "https://api.friendli.ai/serverless/v1/chat/completions"),
    "chutes": ("openai-chat", "https://llm.chutes.ai/v1/chat/completions"),
    "inception": ("openai-chat", "https://api.inceptionlabs.ai/v1/chat/completions"),
    "stepfun": ("openai-chat", "https://api.stepfun.com/v1/chat/completions"),
    "xiaomi": ("openai-chat", "https://api.xiaomimimo.com/v1/chat/completions"),
    "volcengine": ("openai-chat", "https://ark.cn-beijing.volces.com/api/v3/chat/completions"),
    "modelscope": ("openai-chat", "https://api-inference.modelscope.cn/v1/chat/completions"),
    "sarvam": ("openai-chat", "https://api.sarvam.ai/v1/chat/completions"),
    "morph": ("openai-chat", "https://api.morphllm.com/v1/chat/completions"),
    "poolside": ("openai-chat", "https://inference.poolside.ai/v1/chat/completions"),
    "llama": ("openai-chat", "https://api.llama.com/compat/v1/chat/completions"),
    "kimi-coding": ("anthropic", "https://api.kimi.com/coding/v1/messages"),
    "ollama-cloud": ("openai-chat", "https://ollama.com/v1/chat/completions"),
    "vercel": ("openai-chat", "https://ai-gateway.vercel.sh/v1/chat/completions"),
    "requesty": ("openai-chat", "https://router.requesty.ai/v1/chat/completions"),
    "opencode": ("openai-chat", "https://opencode.ai/zen/v1/chat/completions"),
    "kilo": ("openai-chat", "https://api.kilo.ai/api/gateway/chat/completions"),
    "llmgateway": ("openai-chat", "https://api.llmgateway.io/v1/chat/completions"),
    "helicone": ("openai-chat", "https://ai-gateway.helicone.ai/v1/chat/completions"),
    "nano-gpt": ("openai-chat", "https://nano-gpt.com/api/v1/chat/completions"),
    "poe": ("openai-chat", "https://api.poe.com/v1/chat/completions"),
    "zenmux": ("openai-chat", "https://zenmux.ai/api/v1/chat/completions"),
    "synthetic": ("openai-chat", "https://api.synthetic.new/openai/v1/chat/completions"),
    "tinfoil": ("openai-chat", "https://inference.tinfoil.sh/v1/chat/completions"),
    "io-net": ("openai-chat", "https://api.intelligence.io.solutions/api/v1/chat/completions"),
    "gmicloud": ("openai-chat", "https://api.gmi-serving.com/v1/chat/completions"),
    "scaleway": ("openai-chat", "https://api.scaleway.ai/v1/chat/completions"),
    "ovhcloud": ("openai-chat", "https://oai.endpoints.kepler.ai.cloud.ovh.net/v1/chat/completions"),
    "stackit": (
        "openai-chat",
        "https://api.openai-compat.model-serving.eu01.onstackit.cloud/v1/chat/completions",
    ),
    "berget": ("openai-chat", "https://api.berget.ai/v1/chat/completions"),
    "regolo": ("openai-chat", "https://api.regolo.ai/v1/chat/completions"),
    "clarifai": ("openai-chat", "https://api.clarifai.com/v2/ext/openai/v1/chat/completions"),
    "vultr": ("openai-chat", "https://api.vultrinference.com/v1/chat/completions"),
    "wandb": ("openai-chat", "https://api.inference.wandb.ai/v1/chat/completions"),
    "digitalocean": ("openai-chat", "https://inference.do-ai.run/v1/chat/completions"),
    "github-models": ("openai-chat", "https://models.github.ai/inference/chat/completions"),
    "siliconflow-cn": ("openai-chat", "https://api.siliconflow.cn/v1/chat/completions"),
    "moonshot-cn": ("openai-chat", "https://api.moonshot.cn/v1/chat/completions"),
    "zhipu": ("openai-chat", "https://open.bigmodel.cn/api/paas/v4/chat/completions"),
    "zai-coding": ("openai-chat", "https://api.z.ai/api/coding/paas/v4/chat/completions"),
    "dashscope-cn": ("openai-chat", "https://dashscope.aliyuncs.com/compatible-mode/v1/chat/completions"),
    "minimax-cn": ("anthropic", "https://api.minimaxi.com/anthropic/v1/messages"),
    "docker": ("openai-chat", "http://127.0.0.1:12434/engines/v1/chat/completions"),
    "ollama": ("openai-chat", "http://127.0.0.1:11434/v1/chat/completions"),
    "lmstudio": ("openai-chat", "http://127.0.0.1:1234/v1/chat/completions"),
    "llamacpp": ("openai-chat", "http://127.0.0.1:8080/v1/chat/completions"),
    "vllm": ("openai-chat", "http://127.0.0.1:8000/v1/chat/completions"),
    "sglang": ("openai-chat", "http://127.0.0.1:30000/v1/chat/completions"),
}
LOCAL = ("ollama", "lmstudio", "llamacpp", "vllm", "sglang", "docker")
OWN_ADDRESS = ("azure", "azure-deployments", "foundry", "cloudflare", "databricks", "snowflake")
RUNTIME = "https://bedrock-runtime.eu-west-1.amazonaws.com"
PLACES = {"region": "eu-west-1", "project": "p", "location": "global"}
CLOUDS = {
    "bedrock": ("anthropic", f"{RUNTIME}/model/m/invoke"),
    "bedrock-mantle": ("anthropic", "https://bedrock-mantle.eu-west-1.api.aws/anthropic/v1/messages"),
    "vertex": (
        "gemini",
        "https://aiplatform.googleapis.com/v1beta1/projects/p/locations/global/publishers/google/models/m:generateContent",
    ),
}
PATHS = {
    "bedrock-converse": "/model/m/converse",
    "anthropic": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "gemini": "/v1beta/models/m:generateContent",
}


def test_every_provider_is_tested() -> None:
    assert {*ENDPOINTS, *CLOUDS, *OWN_ADDRESS} == set(providers())
    assert len(providers()) >= 60


@pytest.mark.parametrize("name", CLOUDS)
def test_a_cloud_needs_only_its_place(name: str) -> None:
    place = "\n".join(f'{key} = "{value}"' for key, value in PLACES.items())
    upstream = loads(f"[upstreams.{name}]\n{place}").upstreams[name]
    path = PATHS[upstream.protocol]
    if upstream.hosting is not None:
        path, _ = upstream.hosting.answer_request(path, {}, "", upstream.fields("m"))
    assert (upstream.protocol, upstream.url(path)) == CLOUDS[name]


@pytest.mark.parametrize("name", ENDPOINTS)
def test_the_name_of_a_provider_is_enough(name: str) -> None:
    upstream = loads(f"[upstreams.{name}]").upstreams[name]
    assert (upstream.protocol, upstream.url(PATHS[upstream.protocol])) == ENDPOINTS[name]
    assert upstream.credential.kind == ("none" if name in LOCAL else "env")
    assert upstream.facts.chat_compatible is (upstream.protocol == "openai-chat")
    assert upstream.target("m").issuer == name


def test_azure_needs_only_its_address() -> None:
    with pytest.raises(ConfigError, match=r"\[upstreams.azure\] has no base_url"):
        loads("[upstreams.azure]")
    for path in ("", "/", "/openai/v1", "/openai/v1/"):
        azure = loads(f'[upstreams.azure]\nbase_url = "https://r.openai.azure.com{path}"').upstreams["azure"]
        assert azure.url("/v1/responses") == "https://r.openai.azure.com/openai/v1/responses"
        assert (azure.auth, azure.credential.name) == ("api-key", "AZURE_OPENAI_API_KEY")
    for path in ("", "/", "/anthropic", "/anthropic/"):
        text = f'[upstreams.foundry]\nbase_url = "https://r.services.ai.azure.com{path}"'
        found = loads(text).upstreams["foundry"].url("/v1/messages")
        assert found == "https://r.services.ai.azure.com/anthropic/v1/messages"


@pytest.mark.parametrize(
    ("name", "protocol"), [(p.name, other) for p in providers().values() for other in p.also]
)
def test_other_protocols_of_a_provider(name: str, protocol: str) -> None:
    assert protocol in upstreams()
    place = "\n".join(f'{key} = "{value}"' for key, value in (PLACES | {"location": "us-east5"}).items())
    upstream = loads(f'[upstreams.x]\nprovider = "{name}"\nprotocol = "{protocol}"\n{place}').upstreams["x"]
    known = providers()[name]
    assert upstream.url(PATHS[protocol]).startswith(known.also[protocol].format(**upstream.place))
    assert upstream.auth == ("bearer" if protocol == "anthropic" else known.upstream.get("auth"))


def test_facts_depend_on_the_address_and_the_user_overrides_them() -> None:
    text = '[upstreams.x]\nprotocol = "openai-chat"\nbase_url = "https://api.deepseek.com"\n'
    assert loads(text).upstreams["x"].facts.reasoning_field == "reasoning_content"
    assert loads(text).upstreams["x"].credential.kind == "none"
    assert loads(text + 'reasoning_field = "r"').upstreams["x"].facts.reasoning_field == "r"
    assert loads("[upstreams.mistral]").upstreams["mistral"].facts.ids == "mistral"


def test_openai_over_chat_is_still_openai() -> None:
    facts = loads('[upstreams.openai]\nprotocol = "openai-chat"').upstreams["openai"].facts
    assert (facts.chat_compatible, facts.max_tokens_field) == (False, "max_completion_tokens")


@pytest.mark.parametrize("how", ["", 'provider = "openai"\n'])
def test_a_providers_key_does_not_go_to_another_address(how: str) -> None:
    text = f'[upstreams.openai]\n{how}protocol = "openai-chat"\nbase_url = "https://evil.example/v1"'
    assert loads(text).upstreams["openai"].credential.kind == "none"


@pytest.mark.parametrize("protocol", ["", 'protocol = "openai-chat"\n'])
def test_openais_name_with_another_address_is_another_chat_server(protocol: str) -> None:
    text = f'[upstreams.openai]\n{protocol}base_url = "http://127.0.0.1:1/v1"'
    upstream = loads(text).upstreams["openai"]
    assert (upstream.protocol, upstream.provider) == ("openai-chat", None)
    assert upstream.facts.chat_compatible


@pytest.mark.parametrize("name", sorted(providers()))
def test_a_providers_name_brings_its_facts_to_another_address(name: str) -> None:
    known = providers()[name]
    if known.elsewhere or known.platform:
        return  # another server, or a cloud, whose paths depend on its own address
    upstream = loads(f'[upstreams.{name}]\nbase_url = "http://other:1234"').upstreams[name]
    assert (upstream.protocol, upstream.provider) == (known.protocol, name)
    assert upstream.url("/x").startswith("http://other:1234/")
    assert upstream.auth == known.upstream.get("auth")
    assert upstream.web_search is known.upstream.get("web_search", True)
    assert upstream.facts.reasoning_field == known.upstream.get("reasoning_field")


@pytest.mark.parametrize("name", ["deepseek", "openai", "anthropic"])
def test_a_withheld_key_is_reported(name: str) -> None:
    variable = providers()[name].variables()[0]
    text = f'[upstreams.{name}]\nbase_url = "https://other.example"'
    (warning,) = loads(text).warnings
    assert f'set credential = "env:{variable}"' in warning
    for given in (f"env:{variable}", "none"):
        config = loads(f'{text}\ncredential = "{given}"')
        assert config.warnings == ()
        assert config.upstreams[name].credential.kind == given.partition(":")[0]
    config = loads(f'{text}\ncredentials = ["env:A", "env:B"]')
    assert config.warnings == ()
    assert [one.credential.name for one in config.upstreams[name].each_key] == ["A", "B"]


def test_a_local_server_on_another_machine_needs_no_key() -> None:
    config = loads('[upstreams.ollama]\nbase_url = "http://other:11434"')
    upstream = config.upstreams["ollama"]
    assert upstream.url("/v1/chat/completions") == "http://other:11434/v1/chat/completions"
    assert (upstream.credential.kind, config.warnings) == ("none", ())


def test_output_limits_are_numbers() -> None:
    assert all(isinstance(most, int) and most > 1000 for _, most in longest_answers())
