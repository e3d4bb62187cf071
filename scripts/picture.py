"""Draw the README's picture of a mended tool call from real output.

`python scripts/picture.py` plays two scenes of `dragoman demo --show` and writes docs/images/tool-call.svg;
a test fails when the picture is not what the code does.
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

from dragoman.cli.demo.scenes import SCENES, Scene, play

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "tool-call.svg"
MENDED, CUT = SCENES[0], SCENES[-1]
WIDTH, LINE, LEFT, RIGHT, PANE = 880, 22, 24, 452, 404

# Readable on light and dark pages: the picture has its own background in both.
STYLE = """
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #24292f; white-space: pre }
.ground { fill: #ffffff; stroke: #d0d7de } .pane { fill: #f6f8fa; stroke: #d0d7de }
.head { font: 600 13px system-ui, sans-serif; fill: #57606a }
.bad { fill: #b35900 } .good { fill: #116329 } .rule { fill: #0550ae } .wrong { fill: #a40e26 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .ground { fill: #0d1117; stroke: #30363d } .pane { fill: #161b22; stroke: #30363d }
  .head { fill: #8d96a0 }
  .bad { fill: #ffa657 } .good { fill: #7ee787 } .rule { fill: #79c0ff } .wrong { fill: #ff7b72 }
}
"""


def fragments(scene: Scene) -> list[str]:
    """The argument fragments of the scene's call, as the upstream sent them."""
    functions = [delta["tool_calls"][0]["function"] for delta in scene.deltas]
    return [function["arguments"] for function in functions if function["arguments"]]


def given(scene: Scene) -> tuple[list[str], str]:
    """The client's view: the arguments line by line, and the error if there is one."""
    _, payloads = play(scene)
    events = [json.loads(payload) for payload in payloads]
    deltas = [event["delta"].get("partial_json", "") for event in events if event["type"].endswith("_delta")]
    errors = [event["error"]["message"] for event in events if event["type"] == "error"]
    arguments = "".join(deltas)
    return (json.dumps(json.loads(arguments), indent=2).splitlines() if arguments else []), "".join(errors)


def text(x: float, y: float, words: str, kind: str = "") -> str:
    mark = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}"{mark}>{escape(words)}</text>'


def pane(x: int, y: int, title: str, lines: list[tuple[str, str]], height: int) -> list[str]:
    box = f'<rect class="pane" x="{x}" y="{y}" width="{PANE}" height="{height * LINE + 46}" rx="6"/>'
    shown = [text(x + 14, y + 52 + LINE * at, line, kind) for at, (line, kind) in enumerate(lines)]
    return [box, text(x + 14, y + 24, title, "head"), *shown]


def picture() -> str:
    """The whole SVG."""
    exchange, _ = play(MENDED)
    whole, _ = given(MENDED)
    fixes = [fix for receipt in exchange.receipts for fix in receipt.fixes]
    _, error = given(CUT)
    arriving = [(repr(piece)[1:-1], "bad") for piece in fragments(MENDED)]
    y = 16
    drawn = pane(LEFT, y, "the model, in fragments (OpenAI Chat)", arriving, 4)
    drawn += pane(RIGHT, y, "the agent, in one piece (Anthropic)", [(line, "good") for line in whole], 4)
    y += 4 * LINE + 46 + 28
    for fix in fixes:
        drawn.append(text(LEFT + 14, y, f"{fix.rule:<16}{fix.path:<10}{fix.before} → {fix.after}", "rule"))
        y += LINE
    y += 2
    drawn += pane(LEFT, y, "the line drops in mid-command", [(fragments(CUT)[0], "bad")], 2)
    told = [(line, "wrong") for line in wrapped(error)]
    drawn += pane(RIGHT, y, "an error, never half a command", told, 2)
    height = y + 2 * LINE + 46 + 16
    ground = f'<rect class="ground" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>'
    title = "A tool call arrives broken and leaves whole; one that is cut off leaves as an error"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
            f"<title>{title}</title>",
            f"<style>{STYLE}</style>",
            ground,
            *drawn,
            "</svg>",
            "",
        ]
    )


def wrapped(words: str, width: int = 44) -> list[str]:
    lines = [""]
    for word in words.split():
        if len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


if __name__ == "__main__":
    PICTURE.write_text(picture())
