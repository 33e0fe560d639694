"""Python programs, each in a process of its own that is forked from one which has loaded PyTorch:
to load it anew takes longer than most of them do.

    import commands
    done = commands.run(["train", "plans.py:mlp", "-o", out])  # isomer-capture's commands
    done = commands.python(["script.py", "a word"], cwd="/")  # `python3 script.py "a word"`

Both return a subprocess.CompletedProcess. From a shell, in place of `python3 WORDS`, with whatever
descriptors are open:

    python3 tests/support/commands.py SOCKET WORDS

WORDS begin with a script, `-m MODULE` or `-c CODE`. The server is this file as well, started with
`--serve SOCKET MODULE...`; it ends when its standard input does. `.ci/test-run` starts one for all
lines, and names it in ISOMER_PYTHONS; where there is none, a program starts its own."""

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODULES = ["isomer_capture.record.child", "isomer_capture.train.rank", "isomer_capture.cli"]
SERVERS, LOCK = {}, threading.Lock()
STREAMS = 16  # descriptors that a program may be given
FREE = 200  # descriptors from here on are nobody's


def run(words, python=sys.executable, timeout=None):
    """`python -m isomer_capture WORDS`. After `timeout` seconds subprocess.TimeoutExpired."""
    path = os.pathsep.join(p for p in (os.path.join(ROOT, "capture"), os.getenv("PYTHONPATH")) if p)
    environment = dict(os.environ, PYTHONPATH=path)
    return globals()["python"](
        ["-m", "isomer_capture", *words], executable=python, env=environment, timeout=timeout
    )


def python(words, executable=sys.executable, cwd=None, env=None, timeout=None):
    words = [str(w) for w in words]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        with open(os.devnull) as none:
            files = [none.fileno(), out.fileno(), err.fileno()]
            status, _ = forked(server(executable), words, dict(enumerate(files)), cwd, env, timeout)
        out.seek(0), err.seek(0)
        return subprocess.CompletedProcess(words, status, out.read(), err.read())


def server(executable=sys.executable):
    """The socket of one for this Python."""
    shared, _, path = os.environ.get("ISOMER_PYTHONS", "").partition("=")
    if path and same(shared, executable):
        return path
    with LOCK:
        if executable not in SERVERS:
            SERVERS[executable] = Server(executable)
        return SERVERS[executable].socket


def has_torch(executable):
    """Whether this Python has PyTorch."""
    shared, _, path = os.environ.get("ISOMER_PYTHONS", "").partition("=")
    return (path and same(shared, executable)) or not subprocess.run(
        [executable, "-c", "import torch"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ).returncode


def same(a, b):
    """Whether both name one Python: of two links to an interpreter each has its own packages."""
    return os.path.normpath(os.path.abspath(a)) == os.path.normpath(os.path.abspath(b))


class Server:
    def __init__(self, executable, *more):
        self.folder = tempfile.TemporaryDirectory(prefix="isomer-pythons-")
        self.socket = os.path.join(self.folder.name, "socket")
        env = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "capture"))
        env.setdefault("OMP_NUM_THREADS", "1")
        self.process = subprocess.Popen(
            [executable, os.path.abspath(__file__), "--serve", self.socket, *MODULES, *more],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        if self.process.stdout.readline() != b"ready\n":
            raise RuntimeError("no server of Python programs")
        atexit.register(self.end)

    def end(self):
        if not self.process.stdin.closed:
            self.process.stdin.close()
            self.process.wait()
            self.folder.cleanup()


def forked(path, words, files, cwd=None, env=None, timeout=None, sent=None):
    """(the status as subprocess has it, processor seconds) of `python WORDS` with these
    descriptors, each under its number there. `sent` is called when they are on their way."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(timeout)
        s.connect(path)
        said = {
            "words": words,
            "folder": cwd or os.getcwd(),
            "environment": dict(os.environ if env is None else env),
            "files": list(files),
        }
        said = json.dumps(said).encode()
        socket.send_fds(s, [b"%10d" % len(said)], list(files.values()))
        s.sendall(said)
        if sent:
            sent()
        try:
            status, seconds = s.makefile().readline().split()
        except TimeoutError:  # the closed socket ends the program
            raise subprocess.TimeoutExpired(words, timeout) from None
        return int(status), float(seconds)


# ---- in the place of python3 ----


def stand_in(path, words):
    """Ends as the program does."""
    given = {}
    for k in range(STREAMS):
        try:
            os.fstat(k)
            given[k] = k
        except OSError:
            pass
    # Whoever waits for the end of one of them waits for the program's end.
    status, _ = forked(path, words, given, sent=lambda: os.closerange(3, max(given) + 1))
    if status < 0:
        signal.signal(-status, signal.SIG_DFL) if -status != signal.SIGKILL else None
        os.kill(os.getpid(), -status)
    os._exit(status)


# ---- the server ----


def become(said, files):
    """What `python WORDS` does, in a process that has been forked for it."""
    import runpy

    high = [os.dup2(f, FREE + k) for k, f in enumerate(files)]
    os.closerange(3, FREE)
    for number, f in zip(said["files"], high):
        os.dup2(f, number)
    os.closerange(FREE, FREE + STREAMS)
    os.chdir(said["folder"])
    os.environ.clear()
    os.environ.update(said["environment"])
    words = said["words"]
    more = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    if words[0] == "-m":
        sys.argv = words[1:]
        sys.path[:1] = ["", *more]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        sys.path[:1] = ["", *more]
        exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = words
        sys.path[:1] = [os.path.dirname(os.path.abspath(words[0])), *more]
        runpy.run_path(words[0], run_name="__main__")


def program(said, files):
    """Does not return."""
    status = 0
    try:
        become(said, files)
    except SystemExit as e:
        status = e.code if isinstance(e.code, int) else 0 if e.code is None else 1
        if status == 1 and not isinstance(e.code, int):
            print(e.code, file=sys.stderr)
    except BaseException:
        import traceback

        traceback.print_exc()
        status = 1
    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status & 255)


def attend(client):
    """The process that waits for one program, and ends it where its client has gone."""
    length, files, _, _ = socket.recv_fds(client, 10, STREAMS)
    said = json.loads(client.makefile("rb").read(int(length)))
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        client.close()
        program(said, files)
    for f in files:
        os.close(f)
    try:
        os.setpgid(child, child)  # whoever of both comes first
    except OSError:
        pass
    ended = os.pidfd_open(child)
    if client in select.select([client, ended], [], [])[0]:  # it has closed its end
        os.killpg(child, signal.SIGKILL)
    _, status, used = os.wait4(child, 0)
    seconds = used.ru_utime + used.ru_stime
    ledger = said["environment"].get("ISOMER_PYTHONS_LEDGER")
    if ledger:  # of the line of tests that asked for it
        with open(ledger, "a", encoding="utf-8") as f:
            f.write("%f\n" % seconds)
    try:
        client.sendall(b"%d %f\n" % (os.waitstatus_to_exitcode(status), seconds))
    except OSError:
        pass
    os._exit(0)


def serve(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)
        s.listen(64)
        print("ready", flush=True)
        while True:
            ready = select.select([s, sys.stdin], [], [], 1)[0]
            if s in ready:
                client, _ = s.accept()
                if os.fork() == 0:
                    s.close()
                    attend(client)
                client.close()
            reap(os.WNOHANG)
            if sys.stdin in ready:
                break
    reap(0)


def reap(options):
    try:
        while os.waitpid(-1, options)[0]:
            pass
    except ChildProcessError:
        pass


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        import importlib

        for name in sys.argv[3:]:
            importlib.import_module(name)
        gc.collect()
        gc.freeze()  # so that no child writes to what it shares
        serve(sys.argv[2])
    else:
        stand_in(sys.argv[1], sys.argv[2:])
