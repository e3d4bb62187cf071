"""Floor A: a plain aiohttp pass-through. It parses nothing and mends nothing."""

from __future__ import annotations

import sys

from aiohttp import ClientSession, DummyCookieJar, TCPConnector, web

UPSTREAM = web.AppKey("upstream", str)
SESSION = web.AppKey("session", ClientSession)


async def forward(request: web.Request) -> web.StreamResponse:
    body = await request.read()
    headers = {"content-type": "application/json", "authorization": request.headers.get("authorization", "")}
    url = request.app[UPSTREAM] + request.path
    async with request.app[SESSION].post(url, data=body, headers=headers) as answer:
        response = web.StreamResponse(status=answer.status)
        response.content_type = answer.content_type
        response.content_length = answer.content_length
        await response.prepare(request)
        async for chunk in answer.content.iter_any():
            await response.write(chunk)
        await response.write_eof()
        return response


async def connect(app: web.Application) -> None:
    app[SESSION] = ClientSession(connector=TCPConnector(limit=0), cookie_jar=DummyCookieJar())


async def disconnect(app: web.Application) -> None:
    await app[SESSION].close()


def main(port: str, upstream: str) -> None:
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app[UPSTREAM] = upstream
    app.router.add_post("/{path:.*}", forward)
    app.on_startup.append(connect)
    app.on_cleanup.append(disconnect)
    web.run_app(app, host="127.0.0.1", port=int(port), access_log=None, print=None, handler_cancellation=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
