"""A readers-writer lock between unrelated processes, by a name, that survives their deaths.

    from onesided_lock import NamedLock, Torn

    lock = NamedLock("accounts")
    try:
        with lock.exclusive(timeout=5.0):
            ...  # write what the lock protects
    except Torn as torn:  # process torn.by died while it wrote
        with lock.mend() as hold:
            if hold.torn_by:
                ...  # look at the data, make them whole
                hold.clear_torn()

The library, libonesided_lock.so, is searched for where the variable ONESIDED_LOCK_LIBRARY says,
beside this file, and where the system has its libraries. Python 3.8 or later, and nothing else.
Locks may be used by several threads; what a thread has taken, it releases itself. A child that was
forked must open the lock anew (`Forked`); what its parent holds, it leaves alone. A lock that is copied
or pickled, for instance for a process of `multiprocessing`, is opened anew there, by its name or path.
A lock is closed when it is collected. Calls wait in slices, between which Python handles signals.
"""

import ctypes
import os
import time
import weakref

__all__ = ["NamedLock", "Hold", "LockError", "Busy", "TimedOut", "Torn", "Forked", "Removed"]


class LockError(OSError):
    """A call failed; `code` is the code of onesided_lock.h."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class Busy(LockError):
    """Others hold the lock, and the call was not to wait."""


class TimedOut(LockError, TimeoutError):
    """The time has passed."""


class Torn(LockError):
    """What the lock protects may be half-written: process `by` died while it wrote."""

    def __init__(self, code, text):
        super().__init__(code, text)
        self.by = _library.onesided_lock_torn_by()


class Forked(LockError):
    """A parent of this process opened the lock: open it anew."""


class Removed(LockError):
    """The lock's file was removed or replaced while this process had it open: open the lock anew."""


_ERRORS = {1: Busy, 2: TimedOut, 3: Torn, 7: Forked, 15: Removed}
_SLICE = 200  # ms between two looks for signals


def _load():
    name = "libonesided_lock.so"
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    path = os.environ.get("ONESIDED_LOCK_LIBRARY") or (beside if os.path.exists(beside) else name)
    library = ctypes.CDLL(path)
    number, address = ctypes.c_int, ctypes.POINTER(ctypes.c_int)
    for function, arguments in {
        "open": [ctypes.c_char_p, address],
        "open_path": [ctypes.c_char_p, address],
        "close": [number],
        "shared": [number, number],
        "exclusive": [number, number],
        "mend": [number, number, address],
        "clear_torn": [number],
        "release": [number],
        "torn_by": [],
        "error": [],
    }.items():
        function = getattr(library, "onesided_lock_" + function)
        function.argtypes, function.restype = arguments, number
    library.onesided_lock_error.restype = ctypes.c_char_p
    return library


_library = _load()


def _check(code):
    if code:
        raise _ERRORS.get(code, LockError)(code, _library.onesided_lock_error().decode("utf-8", "replace"))


def _take(call, timeout):
    """Calls `call` with milliseconds; waits in slices, between which Python handles signals."""
    if timeout is not None and timeout <= 0:
        return _check(call(0))
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        left = _SLICE if end is None else int((end - time.monotonic()) * 1000) + 1
        code = call(max(1, min(left, _SLICE)))
        if code != 2 or (end is not None and time.monotonic() >= end):
            return _check(code)


class Hold:
    """A hold of a lock, released at the end of its `with` block."""

    def __init__(self, lock, torn_by=0):
        self._lock = lock
        #: The process that tore what the lock protects, -1 if that is not known; 0 if it is whole.
        self.torn_by = torn_by

    def clear_torn(self):
        """Declares that what the lock protects is whole again."""
        _check(_library.onesided_lock_clear_torn(self._lock._handle()))
        self.torn_by = 0

    def release(self):
        """Releases the lock."""
        _check(_library.onesided_lock_release(self._lock._handle()))

    def __reduce__(self):
        raise TypeError("a hold of a lock belongs to the thread that took it, and cannot be copied or pickled")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.release()
        except Forked:
            pass  # a child that ends within its parent's block holds nothing


class NamedLock:
    """The lock called `name`, or that of the file at `path`."""

    def __init__(self, name=None, *, path=None):
        if (name is None) == (path is None):
            raise TypeError("a lock has a name or a path")
        self._number = None
        self._opens = (name, None if path is None else os.path.abspath(path))
        handle = ctypes.c_int()
        if path is None:
            code = _library.onesided_lock_open(name.encode("utf-8"), ctypes.byref(handle))
        else:
            code = _library.onesided_lock_open_path(os.fsencode(path), ctypes.byref(handle))
        _check(code)
        self._number = handle.value
        # Whatever the code: a lock that is still held stays open, and a child has nothing to close.
        self._closes = weakref.finalize(self, _library.onesided_lock_close, self._number)

    def __reduce__(self):
        if self._number is None:
            raise LockError(8, "a closed lock cannot be copied or pickled")
        return _opened, self._opens

    def _handle(self):
        return -1 if self._number is None else self._number

    def shared(self, timeout=None):
        """Takes the lock shared within `timeout` seconds: for ever if None, without a wait if 0."""
        _take(lambda milliseconds: _library.onesided_lock_shared(self._handle(), milliseconds), timeout)
        return Hold(self)

    def exclusive(self, timeout=None):
        """Takes the lock exclusively; `timeout` as for `shared`."""
        _take(lambda milliseconds: _library.onesided_lock_exclusive(self._handle(), milliseconds), timeout)
        return Hold(self)

    def mend(self, timeout=None):
        """Takes the lock exclusively even if what it protects may be torn: see `Hold.torn_by`."""
        torn_by = ctypes.c_int()
        address = ctypes.byref(torn_by)
        _take(lambda milliseconds: _library.onesided_lock_mend(self._handle(), milliseconds, address), timeout)
        return Hold(self, torn_by.value)

    def close(self):
        """Closes the lock. A process that ends without doing so disturbs nobody."""
        if self._number is not None:
            _check(_library.onesided_lock_close(self._number))
            self._closes.detach()
            self._number = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.close()
        except Forked:
            pass  # as for `Hold`


def _opened(name, path):
    """Opens the lock that was copied or pickled."""
    return NamedLock(name, path=path)
