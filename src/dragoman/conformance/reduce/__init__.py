"""The neutral form of each protocol's answers; `neutral` chooses among them."""
