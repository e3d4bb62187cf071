"""The gateway: serves clients over HTTP and WebSocket, and calls upstreams."""
