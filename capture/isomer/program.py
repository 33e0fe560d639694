"""The program `isomer` as it lies in this package, where a wheel brought it along, and the
libraries that it opens: a PyTorch's, through a shim that fits its version, and Z3's.

A wheel holds the shim of one version of PyTorch. For another it is built when it is first needed,
which takes a C++ compiler and a minute, and is kept in $XDG_CACHE_HOME/isomer (~/.cache/isomer).
"""

import hashlib
import importlib.util
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SHIM = os.path.join(HERE, "shim")
# Commands that run operators; the others do without PyTorch.
RUNS_OPERATORS = {"compare", "check", "run", "rules"}
BEGINS = "isomer: building"  # what .ci/build-shim says first
VERSION = "--version"  # says which libtorch there is, and goes without one


class NoShim(Exception):
    """Why there is no shim for the PyTorch that is here."""


def path():
    """The program's path; None where this package has none."""
    file = os.path.join(HERE, "bin", "isomer")
    return file if os.access(file, os.X_OK) else None


def folder_of(package):
    """Where a package lies, which is not imported for it; None if it is not there."""
    spec = importlib.util.find_spec(package)
    return spec.submodule_search_locations[0] if spec and spec.submodule_search_locations else None


def torch_version(torch):
    with open(os.path.join(torch, "version.py"), encoding="utf-8") as f:
        found = re.search(r"^__version__ = '([^']*)'", f.read(), re.M)
    return found.group(1) if found else "unknown"


def shim_folder(may_build=True):
    """The folder of the shim for the PyTorch that is here, built now where there is none."""
    torch = folder_of("torch")
    if torch is None:
        raise NoShim("PyTorch is not installed in this Python (%s)" % sys.executable)
    version = torch_version(torch)
    brought = os.path.join(SHIM, version.split("+")[0])
    if os.path.exists(os.path.join(brought, "libisomer_shim.so")):
        return brought
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    key = hashlib.sha256(("%s\n%s\n%s" % (torch, version, sources())).encode()).hexdigest()[:16]
    folder = os.path.join(cache, "isomer", "%s-%s" % (version, key))
    if not os.path.exists(os.path.join(folder, "libisomer_shim.so")):
        if not may_build:
            raise NoShim("no shim for PyTorch %s was built so far" % version)
        build(torch, folder)
    return folder


def sources():
    """Digest of the sources of the shim: another version of Isomer builds another shim."""
    digest = hashlib.sha256()
    for root, folders, files in os.walk(SHIM):
        folders.sort()
        for name in sorted(files):
            if name.endswith((".cc", ".h")):
                with open(os.path.join(root, name), "rb") as f:
                    digest.update(f.read())
    return digest.hexdigest()


def build(torch, folder):
    script = os.path.join(SHIM, ".ci", "build-shim")
    if not os.path.exists(script):
        raise NoShim("this installation has no sources of the shim")
    why = ""
    with subprocess.Popen(
        ["bash", script, folder],
        env={**os.environ, "LIBTORCH": torch},
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    ) as p:
        for line in p.stderr:
            if line.startswith(BEGINS):
                sys.stderr.write(line)  # at once: it takes a minute
            elif line.strip():
                why = line.strip().removeprefix("isomer: ")
    if p.returncode:
        said = "the shim for PyTorch in %s could not be built" % torch
        raise NoShim("%s: %s" % (said, why) if why else said)


def elsewhere(torch):
    """Whether a PyTorch lies in another folder of packages than this one, as in that of the system
    below a virtual environment: the shim that was brought looks for it beside this package."""
    return os.path.dirname(os.path.abspath(torch)) != os.path.dirname(HERE)


def environment(command):
    """The variables with which the program runs `command`. Raises NoShim."""
    env = dict(os.environ)
    if command in RUNS_OPERATORS | {VERSION} and not env.get("ISOMER_SHIM_DIR"):
        env["ISOMER_SHIM_DIR"] = shim_folder(may_build=command != VERSION)
        torch = folder_of("torch")
        if elsewhere(torch):
            known = [env["LD_LIBRARY_PATH"]] if env.get("LD_LIBRARY_PATH") else []
            env["LD_LIBRARY_PATH"] = os.pathsep.join([os.path.join(torch, "lib"), *known])
    z3 = folder_of("z3")
    library = z3 and os.path.join(z3, "lib", "libz3.so")
    if library and os.path.exists(library) and not env.get("ISOMER_LIBZ3"):
        env["ISOMER_LIBZ3"] = library
    # The program `z3`, which answers certificates, lies beside Python.
    env["PATH"] = env.get("PATH", "") + os.pathsep + os.path.dirname(sys.executable)
    return env


def main():
    """The command `isomer`."""
    program = path()
    if program is None:
        print("isomer: this package was installed without the program", file=sys.stderr)
        return 2
    words = sys.argv[1:]
    command = "" if "--help" in words else (words[0] if words else "")
    try:
        env = environment(command)
    except NoShim as e:
        if command != VERSION:
            print("isomer: %s" % e, file=sys.stderr)
            return 2
        env = environment("")
    os.execve(program, ["isomer", *words], env)
