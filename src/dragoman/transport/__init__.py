"""HTTP, by libraries that others maintain, behind two small contracts: `server/` and `client/`."""
