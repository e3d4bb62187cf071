"""HTTP server and client. Each uses a library (aiohttp, pyqwest) behind a small contract of our own."""
