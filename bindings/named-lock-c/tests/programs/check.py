"""What the Python module promises, beside the example. Arguments: a path for the lock."""

import copy
import os
import pickle
import subprocess
import sys
import threading
import time

import onesided_lock
from onesided_lock import Busy, Forked, LockError, NamedLock, Removed, TimedOut

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
    fails(Busy, other.mend, timeout=0)
    fails(TimedOut, other.mend, timeout=0.01)
    child = os.fork()
    if child == 0:
        fails(Forked, lock.shared, timeout=0)
        own = NamedLock(path=path)
        fails(Busy, own.shared, timeout=0)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
# A child that ends within its parent's blocks ends as it wants to, and releases nothing.
with NamedLock(path=path) as third, third.exclusive(), lock:
    child = os.fork()
    if child == 0:
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    fails(Busy, other.exclusive, timeout=0)
lock = NamedLock(path=path)
try:
    with lock.exclusive():
        raise KeyError("an exception releases the lock and tears nothing")
except KeyError:
    pass
with other.mend() as hold:
    assert hold.torn_by == 0

# A copy is the same lock, opened anew: here, and in another process, which has other locks open.
for again in [copy.copy(lock), copy.deepcopy(lock), pickle.loads(pickle.dumps(lock))]:
    with again.exclusive():
        fails(Busy, lock.shared, timeout=0)
worker = """
import os, pickle, sys
from onesided_lock import Busy, NamedLock
decoys = [NamedLock(path=sys.argv[1] + str(number)) for number in range(8)]
os.chdir("/")
lock = pickle.load(sys.stdin.buffer)
try:
    lock.exclusive(timeout=0)
except Busy:
    print("busy")
"""
os.chdir(os.path.dirname(path))
relative = NamedLock(path=os.path.basename(path))
for sent in [lock, relative]:
    command = [sys.executable, "-c", worker, path]
    with other.exclusive():
        worked = subprocess.run(command, input=pickle.dumps(sent), stdout=subprocess.PIPE, check=True)
    assert worked.stdout == b"busy\n", worked
relative.close()
fails(LockError, pickle.dumps, relative)
with lock.shared() as hold:
    fails(TypeError, pickle.dumps, hold)


def resources():
    with open("/proc/self/maps") as maps:
        return len(os.listdir("/proc/self/fd")), sum(path in line for line in maps)


# Locks that go out of scope are closed: far more than there is room for.
before = resources()
for _ in range(300):
    NamedLock(path=path).shared(timeout=5).release()
    with NamedLock(path=path).shared(timeout=5):
        pass
assert resources() == before, (before, resources())

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
os.remove(path)
for take in [other.shared, other.exclusive, other.mend]:
    assert "was removed" in str(fails(Removed, take, timeout=1))
with NamedLock(path=path) as lock, lock.exclusive(timeout=5):
    # The file that was opened anew is the next one of the removed file.
    fails(Busy, other.shared, timeout=0)
assert onesided_lock.__all__
