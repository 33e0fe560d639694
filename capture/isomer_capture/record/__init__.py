"""The work of the ranks of a user's program, written down while they run: events for `isomer lint`
(docs/events.md), and a capture of the ranks where the program says what is to be captured.

    python -m isomer_capture record --ranks 4 --events events.json train.py ARGS
    python -m isomer_capture record --ranks 2 --capture ranks step.py ARGS

In the program, `recorded` names what a capture is of. Without `record` around the program it does
nothing:

    from isomer_capture.record import recorded

    with recorded(model, {"x": x, "labels": labels}) as r:
        loss = model(x, labels)
        loss.backward()
        r.output("loss", loss)

launch.py starts the ranks, child.py is one of them; watch.py sees its operators, posted.py makes
events of the communication, buffers.py names memory; graph.py has the recorder of train/ make a
graph of one rank, ranks.py makes one capture of all."""

import contextlib

ACTIVE = None  # the recorder of this process, where it is a rank that is recorded


class Outputs:
    """The calls of a program inside of `recorded`."""

    def __init__(self, graph=None):
        self.graph = graph

    def output(self, name, tensor):
        """`tensor` is an output of the capture. Gradients of the module's parameters are, by
        themselves, as grad.NAME."""
        if self.graph:
            self.graph.output(name, tensor)


@contextlib.contextmanager
def recorded(module, inputs=None, placements=None):
    """Capture the operators that run inside: `module`'s parameters and buffers are leaves by their
    names, and `inputs`, a dictionary of tensors, by theirs. `placements` says how the ranks share
    inputs, {"x": "S(0)"} or one for each axis of the mesh; DTensors say it themselves."""
    if ACTIVE is None or not ACTIVE.wants_graph:
        yield Outputs()
        return
    with ACTIVE.capturing(module, inputs or {}, placements or {}) as graph:
        yield Outputs(graph)
