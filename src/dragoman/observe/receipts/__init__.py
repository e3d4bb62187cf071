"""Receipts of exchanges: made from their tracks, kept in the store, found again by a query."""

from .detail import Detail, call_detail, detail
from .ledger import Ledger, receipt_from
from .query import Page, find, parse_query
from .summary import ExchangeSummary, summary

__all__ = [
    "Detail",
    "ExchangeSummary",
    "Ledger",
    "Page",
    "call_detail",
    "detail",
    "find",
    "parse_query",
    "receipt_from",
    "summary",
]
