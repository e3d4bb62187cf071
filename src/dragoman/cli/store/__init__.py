"""`dragoman store`: looks at the store, migrates, exports and prunes it."""
