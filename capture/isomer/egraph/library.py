"""libegraph.so, read through its own headers by cffi: no compiler, and nothing said twice."""

import os
import re

try:
    import cffi
except ImportError as e:  # the rest of the package does without
    raise ImportError("isomer.egraph needs the package cffi: pip install cffi") from e

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
NONE = 2**32 - 1
ANY = 2**64 - 1  # SIZE_MAX: no limit


class Error(Exception):
    """The library refused a call; the text says why."""


def declarations(*texts):
    """What cffi reads, from the headers: no preprocessor, no attributes, no numbers of C alone."""
    text = "\n".join(texts)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$", "", text, flags=re.MULTILINE)
    text = re.sub(r'extern "C" \{|^\}\s*$', "", text, flags=re.MULTILINE)
    text = re.sub(r"ISO_PRINTF\([^)]*\)|__attribute__\s*\(\(\w+\)\)|ISO_MUST_USE", "", text)
    return text.replace("UINT32_MAX", str(NONE))


def first_of(*paths):
    for path in paths:
        if path and os.path.exists(path):
            return path
    raise ImportError("isomer.egraph: there is no %s" % os.path.basename(paths[-1]))


def load():
    ffi = cffi.FFI()
    own = os.path.join(HERE, "lib")
    headers = []
    for name in ("base/error.h", "egraph.h"):
        brought = os.path.join(own, os.path.basename(name))
        path = first_of(brought, os.path.join(TREE, "egraph", name))
        with open(path, encoding="utf-8") as f:
            headers.append(f.read())
    ffi.cdef(declarations("typedef struct _IO_FILE FILE; void free(void *);", *headers))
    library = "libegraph.so"
    path = first_of(
        os.environ.get("ISOMER_EGRAPH"),
        os.path.join(own, library),
        os.path.join(TREE, "build", library),
    )
    return ffi, ffi.dlopen(path), ffi.dlopen(None)


ffi, lib, libc = load()


def said(err):
    return ffi.string(err.msg).decode(errors="replace")


def owned(text):
    """A text that the library made, as a Python string."""
    try:
        return ffi.string(text[0]).decode()
    finally:
        libc.free(text[0])
