"""Code that all protocols share: ids, names, schemas, failures, typed JSON."""
