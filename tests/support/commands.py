"""Commands of isomer_capture, each in a process of its own that is forked from one which has loaded
PyTorch: to load it anew takes longer than most of them do.

    import commands
    done = commands.run(["train", "plans.py:mlp", "-o", out])     # a subprocess.CompletedProcess

The server is this file as a program; it ends when its standard input does."""

import atexit
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SERVERS, LOCK = {}, threading.Lock()


def run(words, python=sys.executable, timeout=None):
    """`python -m isomer_capture WORDS`. After `timeout` seconds subprocess.TimeoutExpired."""
    with LOCK:
        if python not in SERVERS:
            SERVERS[python] = Server(python)
    return SERVERS[python].run([str(w) for w in words], timeout)


class Server:
    def __init__(self, python):
        self.folder = tempfile.TemporaryDirectory(prefix="isomer-commands-")
        self.socket = os.path.join(self.folder.name, "socket")
        env = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "capture"))
        env.setdefault("OMP_NUM_THREADS", "1")
        self.process = subprocess.Popen(
            [python, os.path.abspath(__file__), self.socket],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        if self.process.stdout.readline() != b"ready\n":
            raise RuntimeError("no server of commands")
        atexit.register(self.end)

    def run(self, words, timeout):
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(timeout)
                s.connect(self.socket)
                said = json.dumps({"words": words, "folder": os.getcwd()}).encode()
                socket.send_fds(s, [said], [out.fileno(), err.fileno()])
                try:
                    status = int(s.makefile().readline())
                except TimeoutError:  # the closed socket ends the command
                    raise subprocess.TimeoutExpired(words, timeout) from None
            out.seek(0), err.seek(0)
            return subprocess.CompletedProcess(words, status, out.read(), err.read())

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.folder.cleanup()


# ---- the server ----


def command(client):
    """The process of one command."""
    said, files, _, _ = socket.recv_fds(client, 1 << 20, 2)
    said = json.loads(said)
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        client.close()
        for k, f in enumerate([os.open(os.devnull, os.O_RDONLY), *files]):
            os.dup2(f, k)
        os.chdir(said["folder"])
        sys.argv = ["isomer-capture", *said["words"]]
        status = 1
        try:
            status = main(said["words"]) or 0
        except SystemExit as e:
            status = e.code if isinstance(e.code, int) else 1
        except BaseException:
            import traceback

            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    try:
        os.setpgid(child, child)  # whoever of both comes first
    except OSError:
        pass
    ended = os.pidfd_open(child)
    if client in select.select([client, ended], [], [])[0]:  # it has closed its end
        os.killpg(child, 9)
    _, status = os.waitpid(child, 0)
    try:
        client.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    except OSError:
        pass
    os._exit(0)


def serve(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)
        s.listen()
        print("ready", flush=True)
        while True:
            ready = select.select([s, sys.stdin], [], [], 1)[0]
            if s in ready:
                client, _ = s.accept()
                if os.fork() == 0:
                    s.close()
                    command(client)
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
    import isomer_capture.record.child  # noqa: F401
    import isomer_capture.train.rank  # noqa: F401
    from isomer_capture.cli import main

    serve(sys.argv[1])
