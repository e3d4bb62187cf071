"""The examples in docstrings are true."""

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

import dragoman

ROOT = Path(dragoman.__file__).parent
EXAMPLE = re.compile(r"^ +>>> ", re.MULTILINE)
WITH_EXAMPLES = sorted(
    path.relative_to(ROOT) for path in ROOT.rglob("*.py") if EXAMPLE.search(path.read_text())
)


def test_modules_have_examples() -> None:
    assert len(WITH_EXAMPLES) > 20


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=str)
def test_the_examples_of_a_module_are_true(path: Path) -> None:
    module = import_module(".".join(["dragoman", *path.with_suffix("").parts]))
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
