"""TensorZero's gateway from its Python package: Rust, serving HTTP. Run by the Python of that package."""

import signal
import sys
from pathlib import Path
from urllib.parse import urlsplit

from tensorzero import _start_http_gateway

config, told = sys.argv[1:]
gateway = _start_http_gateway(
    config_file=config, clickhouse_url=None, postgres_url=None, valkey_url=None, async_setup=False
)
Path(told).write_text(f"{urlsplit(gateway.base_url).port}\n")
signal.pause()
