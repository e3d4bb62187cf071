"""HTTP server and client. Each uses a library (aiohttp, libcurl) behind a small contract of our own."""
