"""An HTTP/2 server over TLS, built with h2."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, StreamEnded, StreamReset, WindowUpdated
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes


class Stream:
    """One request, as the server sees it."""

    def __init__(self, line: "Line", number: int, headers: dict[str, str]) -> None:
        self.headers = headers
        self.body = b""
        self.asked = asyncio.Event()
        self.reset = asyncio.Event()
        """The other side has cancelled it."""
        self.sent = 0
        self._line = line
        self._number = number

    async def begin(self, status: str = "200") -> None:
        self._line.h2.send_headers(self._number, [(":status", status), ("content-type", "text/plain")])
        self._line.flush()

    async def say(self, data: bytes) -> None:
        """Send `data` as fast as the client's window allows."""
        while data:
            room = min(self._line.h2.local_flow_control_window(self._number), 16_384, len(data))
            if room <= 0:
                self._line.room.clear()
                await self._line.room.wait()
                continue
            self._line.h2.send_data(self._number, data[:room])
            self.sent += room
            data = data[room:]
            self._line.flush()

    def hang_up(self) -> None:
        """Closes the connection."""
        self._line.writer.transport.abort()

    async def end(self) -> None:
        self._line.h2.end_stream(self._number)
        self._line.flush()


Script = Callable[[Stream], Awaitable[None]]


class Line:
    """One connection."""

    def __init__(self, writer: asyncio.StreamWriter, most: int) -> None:
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.h2.local_settings[SettingCodes.MAX_CONCURRENT_STREAMS] = most
        self.h2.initiate_connection()
        self.streams: dict[int, Stream] = {}
        self.room = asyncio.Event()
        self.writer = writer
        self.flush()

    def flush(self) -> None:
        self.writer.write(self.h2.data_to_send())


class Served:
    """The server. `lines` are its connections."""

    def __init__(self, script: Script, most: int) -> None:
        self.lines: list[Line] = []
        self.url = ""
        self.tasks: set[asyncio.Task[None]] = set()
        self._script = script
        self._most = most

    @property
    def streams(self) -> list[Stream]:
        return [stream for line in self.lines for stream in line.streams.values()]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        line = Line(writer, self._most)
        self.lines.append(line)
        with suppress(ConnectionError, asyncio.CancelledError):
            while data := await reader.read(65536):
                for event in line.h2.receive_data(data):
                    self._heard(line, event)
                line.flush()
        writer.close()

    def _heard(self, line: Line, event: object) -> None:
        match event:
            case RequestReceived(stream_id=number, headers=headers):
                stream = line.streams[number] = Stream(line, number, dict(headers))
                task = asyncio.get_running_loop().create_task(self._play(stream))
                self.tasks.add(task)
            case DataReceived(stream_id=number, data=data, flow_controlled_length=size):
                line.streams[number].body += data
                line.h2.acknowledge_received_data(size, number)
            case StreamEnded(stream_id=number):
                line.streams[number].asked.set()
            case StreamReset(stream_id=number):
                line.streams[number].reset.set()
                line.room.set()
            case WindowUpdated():
                line.room.set()
            case _:
                pass

    async def _play(self, stream: Stream) -> None:
        await stream.asked.wait()
        with suppress(ProtocolError, KeyError):  # it was reset
            await self._script(stream)


@asynccontextmanager
async def http2(script: Script, tls: ssl.SSLContext, *, most: int = 100) -> AsyncIterator[Served]:
    """Serve with at most `most` concurrent streams per connection."""
    served = Served(script, most)
    tls.set_alpn_protocols(["h2"])
    server = await asyncio.start_server(served.serve, "127.0.0.1", 0, ssl=tls)
    served.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield served
    finally:
        server.close()
        for task in served.tasks:
            task.cancel()
        await asyncio.gather(*served.tasks, return_exceptions=True)
        for line in served.lines:
            line.writer.transport.abort()
        await asyncio.sleep(0)
