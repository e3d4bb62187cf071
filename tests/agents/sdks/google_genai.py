"""The official Google SDK: automatic function calling, then streams with a manual loop."""

from common import ABOUT, BASE, KEY, MODEL, QUESTION, SCHEMA, TOOL, shell
from google import genai
from google.genai import types

client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=BASE))


def run_shell(command: str) -> str:
    """Run a shell command and return what it printed."""
    return shell(command)


assert client.models.count_tokens(model=MODEL, contents="Hi").total_tokens
by_itself = types.GenerateContentConfig(tools=[run_shell])
print(client.models.generate_content(model=MODEL, contents=QUESTION, config=by_itself).text)

declared = types.FunctionDeclaration(name=TOOL, description=ABOUT, parameters_json_schema=SCHEMA)
config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[declared])])
contents = [types.Content(role="user", parts=[types.Part(text=QUESTION)])]
while True:
    parts = [
        part
        for chunk in client.models.generate_content_stream(model=MODEL, contents=contents, config=config)
        for candidate in chunk.candidates or []
        for part in (candidate.content and candidate.content.parts) or []
    ]
    calls = [part.function_call for part in parts if part.function_call]
    if not calls:
        break
    answers = [
        types.Part.from_function_response(name=c.name, response={"output": shell(**c.args)}) for c in calls
    ]
    contents += [types.Content(role="model", parts=parts), types.Content(role="user", parts=answers)]
print("".join(part.text or "" for part in parts))
