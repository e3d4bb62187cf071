"""The other endpoints of a protocol: requests and answers pass as they are."""
