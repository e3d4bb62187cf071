"""The core alone, without HTTP: what one stage costs."""
