"""Choosing a target: routes, health and cooldowns, backoff, limits of models."""
