"""The one error that capturing raises: a sentence that says what is wrong and what to do about
it."""


class CaptureError(Exception):
    pass


class Unreadable(CaptureError):
    """Of a program that torch.export traced, with something in its graph that no capture holds. As
    it runs it may have operators alone."""


def short(error, limit=300):
    """The first line that says something, of an exception that may run over pages; where it says
    nothing, its place."""
    if not str(error).strip():
        at = error.__traceback__
        while at is not None and at.tb_next is not None:
            at = at.tb_next
        code = at and at.tb_frame.f_code
        return (
            "%s in %s, line %d"
            % (type(error).__name__, code.co_filename.split("-packages/")[-1], at.tb_lineno)
            if at
            else type(error).__name__
        )
    lines = [line.strip() for line in str(error).splitlines()]
    lines = [s for s in lines if s and not s.startswith(("Traceback", "File ", "^"))]
    if not lines:
        return type(error).__name__
    said = lines[0]
    if said.endswith(":") and len(lines) > 1:  # what it announces stands in the next one
        said += " " + lines[1]
    return said[:limit]
