"""One exchange: a request of a client, the attempts to answer it, and the answer."""
