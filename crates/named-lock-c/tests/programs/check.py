"""What the Python module promises, beside the example. Arguments: a path for the lock."""

import os
import sys
import threading
import time

import onesided_lock
from onesided_lock import Busy, Forked, LockError, NamedLock, TimedOut

path = sys.argv[1]


def fails(error, act, *args, **named):
    try:
        act(*args, **named)
    except error as told:
        assert str(told), "an error without a text"
        return told
    raise AssertionError(f"{act} did not raise {error}")


assert fails(LockError, NamedLock, "../name").code == 4
assert fails(LockError, NamedLock, path="/dev/null").code == 5
fails(TypeError, NamedLock)
lock, other = NamedLock(path=path), NamedLock(path=path)
with lock.shared(), lock.shared(timeout=1):
    with other.shared(timeout=0):
        fails(Busy, other.exclusive, timeout=0)
with lock.exclusive():
    began = time.monotonic()
    fails(TimedOut, other.shared, timeout=0.5)
    fails(TimeoutError, other.exclusive, timeout=0.01)
    assert 0.4 < time.monotonic() - began < 5
    fails(Busy, other.shared, timeout=0)
    child = os.fork()
    if child == 0:
        fails(Forked, lock.shared, timeout=0)
        own = NamedLock(path=path)
        fails(Busy, own.shared, timeout=0)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
try:
    with lock.exclusive():
        raise KeyError("an exception releases the lock and tears nothing")
except KeyError:
    pass
with other.mend() as hold:
    assert hold.torn_by == 0

count = 0


def add():
    global count
    for _ in range(500):
        with lock.exclusive():
            seen = count
            time.sleep(0)
            count = seen + 1


threads = [threading.Thread(target=add) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert count == 2000, count
hold = lock.exclusive()
assert fails(LockError, lock.close).code == 10
hold.release()
assert fails(LockError, hold.release).code == 9
lock.close()
lock.close()
assert fails(LockError, lock.shared).code == 8
assert onesided_lock.__all__
