"""What the protocols share: ids, names, schemas, failures, typed JSON."""
