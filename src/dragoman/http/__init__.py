"""HTTP/1.1 as Dragoman speaks it: asked (`client/`) and served, on bare asyncio, read by llhttp."""
