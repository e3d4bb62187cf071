"""Choose a target for a request: routes, health and cooldowns, backoff, model limits."""
