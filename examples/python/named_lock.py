"""Processes that share nothing but a name: one writes and is killed in the middle of it; the other,
which waits for the lock, is told, mends what was written, and goes on.

    PYTHONPATH=bindings/named-lock-c/python ONESIDED_LOCK_LIBRARY=.../libonesided_lock.so \\
        python3 examples/python/named_lock.py [name]
"""

import os
import signal
import subprocess
import sys
import tempfile

from onesided_lock import Busy, NamedLock, Torn

TOTAL = 100


def load(accounts):
    with open(accounts) as file:
        return [int(word) for word in file.read().split()]


def store(accounts, first, second):
    with open(accounts, "w") as file:
        file.write(f"{first} {second}\n")


def write_and_be_killed(name, accounts):
    """What the other process does. Any program could be it: it knows the name of the lock."""
    with NamedLock(name) as lock, lock.exclusive(timeout=5):
        first, second = load(accounts)
        store(accounts, first - 10, second)
        print("in mid-write", flush=True)
        signal.pause()


def main(name):
    with tempfile.TemporaryDirectory() as folder:
        accounts = os.path.join(folder, "accounts")
        store(accounts, 60, 40)
        command = [sys.executable, __file__, name, accounts]
        victim = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert victim.stdout.readline() == "in mid-write\n"

        lock = NamedLock(name)
        try:
            lock.shared(timeout=0)
            raise AssertionError("the other process holds the lock")
        except Busy:
            print(f"process {victim.pid} holds the lock and writes")
        victim.kill()
        try:
            lock.exclusive(timeout=5)
            raise AssertionError("nobody told")
        except Torn as torn:
            assert torn.by == victim.pid
            print(f"told: {torn}")
        with lock.mend(timeout=5) as hold:
            first, second = load(accounts)
            print(f"process {hold.torn_by} left {first} + {second}")
            store(accounts, first, TOTAL - first)
            hold.clear_torn()
        victim.wait()

        # A child that was forked opens the lock anew.
        child = os.fork()
        if child == 0:
            with NamedLock(name) as own, own.exclusive(timeout=5):
                first, second = load(accounts)
                store(accounts, first + 5, second - 5)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        with lock.shared(timeout=5):
            first, second = load(accounts)
        lock.close()
        assert first + second == TOTAL
        print(f"mended, and gone on: {first} + {second}")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        write_and_be_killed(sys.argv[1], sys.argv[2])
    else:
        main(sys.argv[1] if len(sys.argv) > 1 else "onesided-example")
