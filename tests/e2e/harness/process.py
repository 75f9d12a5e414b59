"""Child processes that never outlive us, and loopback ports for them."""

import ctypes
import os
import pathlib
import random
import signal
import socket
import subprocess
import time

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class Timeout(Exception):
    """A condition did not come true before its deadline."""


def wait_until(condition, seconds, what, interval=0.05):
    """Polls until condition() is true and returns its value; Timeout names what was awaited."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Timeout(f"after {seconds} s still waiting for {what}")
        time.sleep(interval)


def free_ports(count):
    """Free loopback ports, all different.

    Below the kernel's ephemeral range: a port from that range, once we let go of it, could be
    given to an outgoing connection before the program that it is meant for listens.
    """
    held = []
    try:
        while len(held) < count:
            holder = socket.socket()
            try:
                holder.bind(("127.0.0.1", random.randrange(20000, 32000)))
                held.append(holder)
            except OSError:
                holder.close()
        return [holder.getsockname()[1] for holder in held]
    finally:
        for holder in held:
            holder.close()


def _die_with_parent():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class Process:
    """One program with its log file. Start it from the main thread only: the kernel ties
    "kill me when my parent dies" to the thread that started the child."""

    def __init__(self, name, command, log_folder, env=None):
        self.name = name
        self.command = [str(part) for part in command]
        self.log = pathlib.Path(log_folder) / f"{name}.log"
        self.env = env
        self.child = None
        self.ended_early = False

    def start(self):
        """Starts the program; its output is appended to the log."""
        with open(self.log, "ab") as log:
            log.write(("\n$ " + " ".join(self.command) + "\n").encode())
            log.flush()
            self.child = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, **(self.env or {})}, preexec_fn=_die_with_parent)
        return self

    def running(self):
        """Is the process there?"""
        return self.child is not None and self.child.poll() is None

    def stop(self, how=signal.SIGTERM, seconds=20):
        """Sends a signal and waits for the end; returns the exit status, negative if a signal
        ended it. A process that does not obey is killed, and Timeout says so."""
        if self.child is None:
            return None
        self.ended_early = self.child.poll() is not None
        if not self.ended_early:
            self.child.send_signal(how)
        try:
            return self.child.wait(seconds)
        except subprocess.TimeoutExpired as error:
            self.child.kill()
            self.child.wait()
            raise Timeout(f"{self.name} did not end within {seconds} s of signal {how}") from error

    def tail(self, lines=30):
        """The last lines of the log."""
        try:
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        except OSError as error:
            return str(error)

    def resident_mib(self):
        """Resident memory now, in MiB; 0 if the process is gone."""
        try:
            status = pathlib.Path(f"/proc/{self.child.pid}/status").read_text()
        except OSError:
            return 0
        for line in status.splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) // 1024
        return 0
