"""The commands below `store`."""
