"""This package run by the Python of another environment, where another Transformers is installed:
nothing else of this environment is seen there."""

import os
import subprocess

from .errors import CaptureError

# argv: this package's folder, then the command's arguments. The folder beside it may hold the
# whole of this environment, so that it is no place to import from.
START = """
import importlib.util, os, sys
folder = sys.argv[1]
if sys.version_info < (3, 11):
    found = "%d.%d" % sys.version_info[:2]
    sys.exit("isomer-capture: %s is Python %s; captures need 3.11" % (sys.executable, found))
spec = importlib.util.spec_from_file_location(
    "isomer_capture", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
)
sys.modules["isomer_capture"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["isomer_capture"])
from isomer_capture.cli import main
sys.exit(main(sys.argv[2:], here=True))
"""


def interpreter(environment):
    """The Python of a virtual environment's folder, or the Python itself."""
    for path in (os.path.join(environment, "bin", "python"), environment):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise CaptureError("--python: %s is no environment (it has no bin/python)" % environment)


def run(environment, arguments, limit=None):
    """Status and lines of stderr of `isomer-capture ARGUMENTS` there; its stdout is this one's.
    limit: seconds, after which it is ended."""
    command = [interpreter(environment), "-c", START, os.path.dirname(os.path.abspath(__file__))]
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    try:
        done = subprocess.run(
            [*command, *arguments], stderr=subprocess.PIPE, text=True, env=env, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return 2, ["no capture after %d s" % limit]
    except OSError as e:
        raise CaptureError("--python: %s: %s" % (environment, e.strerror)) from e
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    if done.returncode and not lines:
        lines = ["the Python of %s ended with status %d" % (environment, done.returncode)]
    if done.returncode not in (0, 2):  # it could not even say what is wrong
        lines = lines[-1:]
    return 2 if done.returncode else 0, lines
