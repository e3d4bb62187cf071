"""A request whose body no longer fits, so that writers write its settings from their neutral form."""

from dragoman.model.messages import Request


def anew(request: Request) -> Request:
    """The same request, as after a change of its settings."""
    return request.changed(settings=request.settings)
