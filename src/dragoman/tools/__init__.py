"""Tool calls made right: whole, valid, once. One code path for streams, bodies and the library face."""
