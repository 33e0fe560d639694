"""For tests, with pytest or without: a failure's message is the short report."""

from . import Error, compare

__all__ = ["assert_equivalent"]


def assert_equivalent(model_a, model_b, inputs=None, *, evidence=None, any_layout=False, **options):
    """Fails (AssertionError) unless the two models are equivalent. evidence="proved" asks for that
    too; any_layout=True allows outputs that are each other's but for how they are laid out, as one
    that is transposed. The other arguments are isomer.compare's. Returns the Result."""
    __tracebackhide__ = True
    if evidence not in (None, "tested", "proved"):
        raise Error('evidence is "tested" or "proved", not %r' % (evidence,))
    result = compare(model_a, model_b, inputs, **options)
    if not result:
        raise AssertionError(result.short())
    if result.layouts() and not any_layout:
        raise AssertionError(
            "equivalent, but laid out otherwise: %s (any_layout=True allows it)"
            % "; ".join(result.layouts())
        )
    if evidence == "proved" and result.evidence != "proved":
        weak = [r["name"] for r in result.rules if r.get("status") != "proved"]
        raise AssertionError(
            "equivalent, but only %s; not proved: %s"
            % (result.evidence, ", ".join(weak) or "a kernel")
        )
    return result
