"""Scores: how reliable each model of each upstream was, from the counts that receipts left in the store."""

from .rating import ratings
from .report import ScoreReport, ScoreRequest, Share, TargetScore, parse, report

__all__ = ["ScoreReport", "ScoreRequest", "Share", "TargetScore", "parse", "ratings", "report"]
