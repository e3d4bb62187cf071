"""The language of a file by its name, as VS Code's language id (`language` in Cursor's edits)."""

from __future__ import annotations

UNKNOWN = "plaintext"

_BY_SUFFIX = {
    "bash": "shellscript",
    "bat": "bat",
    "c": "c",
    "cc": "cpp",
    "cjs": "javascript",
    "clj": "clojure",
    "cpp": "cpp",
    "cs": "csharp",
    "css": "css",
    "cts": "typescript",
    "dart": "dart",
    "diff": "diff",
    "ex": "elixir",
    "exs": "elixir",
    "fs": "fsharp",
    "go": "go",
    "graphql": "graphql",
    "h": "c",
    "hpp": "cpp",
    "hs": "haskell",
    "htm": "html",
    "html": "html",
    "ini": "ini",
    "ipynb": "jupyter",
    "java": "java",
    "js": "javascript",
    "json": "json",
    "jsonc": "jsonc",
    "jsx": "javascriptreact",
    "kt": "kotlin",
    "kts": "kotlin",
    "less": "less",
    "lua": "lua",
    "m": "objective-c",
    "md": "markdown",
    "mdx": "mdx",
    "mjs": "javascript",
    "mts": "typescript",
    "patch": "diff",
    "php": "php",
    "pl": "perl",
    "proto": "proto",
    "ps1": "powershell",
    "py": "python",
    "pyi": "python",
    "r": "r",
    "rb": "ruby",
    "rs": "rust",
    "scala": "scala",
    "scss": "scss",
    "sh": "shellscript",
    "sql": "sql",
    "svelte": "svelte",
    "swift": "swift",
    "tex": "latex",
    "tf": "terraform",
    "toml": "toml",
    "ts": "typescript",
    "tsx": "typescriptreact",
    "vue": "vue",
    "xml": "xml",
    "yaml": "yaml",
    "yml": "yaml",
    "zig": "zig",
    "zsh": "shellscript",
}
_BY_NAME = {"dockerfile": "dockerfile", "makefile": "makefile", "gnumakefile": "makefile"}


def language(path: str) -> str:
    """
    >>> language("src/app.test.tsx"), language("Makefile"), language("LICENSE")
    ('typescriptreact', 'makefile', 'plaintext')
    """
    name = path.replace("\\", "/").rpartition("/")[2].lower()
    if name in _BY_NAME:
        return _BY_NAME[name]
    return _BY_SUFFIX.get(name.rpartition(".")[2] if "." in name else "", UNKNOWN)
