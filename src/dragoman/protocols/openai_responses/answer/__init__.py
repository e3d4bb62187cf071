"""Answers: `decoder` reads an upstream's, `encoder` writes one for a client."""
