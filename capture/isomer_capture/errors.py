"""The one error that capturing raises: a sentence that says what is wrong and what to do about it."""


class CaptureError(Exception):
    pass


def short(error, limit=300):
    """The first line that says something, of an exception that may run over pages."""
    for line in str(error).splitlines():
        line = line.strip()
        if line and not line.startswith(("Traceback", "File ", "^")):
            return line[:limit]
    return type(error).__name__
