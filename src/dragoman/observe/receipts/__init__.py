"""Receipts of exchanges: made from their tracks, kept in the store, found again by what one asks for."""

from .detail import Detail, call_detail, detail
from .ledger import Ledger
from .prices import Prices
from .query import Page, asked_for, find
from .summary import Summary, summary

__all__ = [
    "Detail",
    "Ledger",
    "Page",
    "Prices",
    "Summary",
    "asked_for",
    "call_detail",
    "detail",
    "find",
    "summary",
]
