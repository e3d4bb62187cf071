"""Law 40: the same input gives the same bytes, in another process and on repetition."""

import json
import os
import subprocess
import sys


def fingerprints(seed: str) -> dict[str, list[str]]:
    """The fingerprints of a process with this hash seed."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    env |= {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-m", "support.fingerprints"]
    return json.loads(subprocess.run(words, env=env, capture_output=True, check=True).stdout)


def test_40_the_same_input_gives_the_same_bytes() -> None:
    one, other = fingerprints("1"), fingerprints("2")
    assert len(one) > 500
    assert one.keys() == other.keys()
    assert [name for name in one if len({*one[name], *other[name]}) > 1] == []
