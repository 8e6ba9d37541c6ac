/*
 * A readers-writer lock between unrelated processes, by a name, that survives their deaths:
 * libonesided_lock. Linux.
 *
 * Programs that open the same name take the same lock. If a process is killed while it holds the lock
 * exclusively, the others get ONESIDED_LOCK_TORN within some milliseconds, and by onesided_lock_torn_by
 * its number: what the lock protects may be half-written. One of them takes the lock by
 * onesided_lock_mend, repairs the data, declares so by onesided_lock_clear_torn, and all go on. The
 * death of a process that holds the lock shared, or waits, only delays the others.
 *
 * Functions return ONESIDED_LOCK_OK, 0, or another of the codes below; then nothing was taken or
 * changed. Any thread may call them; what a thread has taken, it releases itself. A child that was
 * forked must open the lock anew (ONESIDED_LOCK_FORKED).
 */
#ifndef ONESIDED_LOCK_H
#define ONESIDED_LOCK_H

#ifdef __cplusplus
extern "C" {
#endif

enum {
    ONESIDED_LOCK_OK = 0,
    ONESIDED_LOCK_BUSY = 1,      /* others hold the lock, and the call was not to wait */
    ONESIDED_LOCK_TIMED_OUT = 2, /* the time has passed */
    ONESIDED_LOCK_TORN = 3,      /* what the lock protects may be half-written */
    ONESIDED_LOCK_NAME = 4,      /* this is no name of a lock */
    ONESIDED_LOCK_FOREIGN = 5,   /* the file or its directory is not as this library makes it */
    ONESIDED_LOCK_FULL = 6,      /* too many processes have the lock open */
    ONESIDED_LOCK_FORKED = 7,    /* a parent of this process opened the lock */
    ONESIDED_LOCK_NO_LOCK = 8,   /* this is no handle, or it was closed */
    ONESIDED_LOCK_NOT_HELD = 9,  /* this thread does not hold the lock, or not exclusively */
    ONESIDED_LOCK_HELD = 10,     /* a lock that is held can't be closed */
    ONESIDED_LOCK_SYSTEM = 11,   /* the system refused a call */
    ONESIDED_LOCK_PROTOCOL = 12, /* the lock's file is damaged */
    ONESIDED_LOCK_ARGUMENT = 13, /* a null pointer */
    ONESIDED_LOCK_DEFECT = 14,   /* a defect of the library */
    ONESIDED_LOCK_REMOVED = 15   /* the lock's file was removed or replaced: open the lock anew */
};

/* Opens the lock called `name`, and makes it if it does not exist: 1 to 100 ASCII letters, digits, '-',
 * '_' and '.', not beginning with '.'. Its file is /tmp/onesided-locks-<user>/<name>.lock, or <name>.lock
 * in the directory that the variable ONESIDED_LOCK_DIR names. *lock is the handle, not negative. The
 * library keeps no descriptor below 3, and all are closed on exec. */
int onesided_lock_open(const char *name, int *lock);
/* The same for a file at this path. A relative one is that of the working directory at this time. */
int onesided_lock_open_path(const char *path, int *lock);
/* Closes the lock. A process that ends without doing so disturbs nobody. */
int onesided_lock_close(int lock);

/* Take the lock, and wait for that so many milliseconds: 0 means not at all (ONESIDED_LOCK_BUSY if
 * others hold it), less means for ever. A thread may take it shared several times. What holders did before is seen by who comes after them. */
int onesided_lock_shared(int lock, int milliseconds);
int onesided_lock_exclusive(int lock, int milliseconds);
/* Takes the lock exclusively even if what it protects may be torn: *torn_by is then the process that
 * tore it (-1 if that is not known), otherwise 0. `torn_by` may be null. */
int onesided_lock_mend(int lock, int milliseconds, int *torn_by);
/* Declares that what the lock protects is whole again. The thread holds it exclusively. */
int onesided_lock_clear_torn(int lock);
/* Releases what the thread took last. */
int onesided_lock_release(int lock);

/* About the calling thread's last call that failed: the process that tore the data, after
 * ONESIDED_LOCK_TORN; and a text for people, which is valid until the next call that fails. */
int onesided_lock_torn_by(void);
const char *onesided_lock_error(void);

#ifdef __cplusplus
}
#endif

#endif
