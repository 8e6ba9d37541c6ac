/* Every code that can be had without damage, and handles that are none. Arguments: a path. */
#define _XOPEN_SOURCE 700
#include <onesided_lock.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int lock;

#define EXPECT(code, call)                                                                           \
    do {                                                                                             \
        int got = (call);                                                                            \
        if (got != (code)) {                                                                         \
            fprintf(stderr, "%s: %d, not %d: %s\n", #call, got, (code), onesided_lock_error());      \
            exit(1);                                                                                 \
        }                                                                                            \
    } while (0)

static void *other_thread(void *unused)
{
    EXPECT(ONESIDED_LOCK_NOT_HELD, onesided_lock_release(lock));
    EXPECT(ONESIDED_LOCK_BUSY, onesided_lock_exclusive(lock, 0));
    EXPECT(ONESIDED_LOCK_BUSY, onesided_lock_mend(lock, 0, NULL));
    EXPECT(ONESIDED_LOCK_TIMED_OUT, onesided_lock_exclusive(lock, 20));
    EXPECT(ONESIDED_LOCK_TIMED_OUT, onesided_lock_mend(lock, 20, NULL));
    return unused;
}

static volatile long count;

static void *adds(void *unused)
{
    for (int turn = 0; turn < 2000; turn++) {
        EXPECT(ONESIDED_LOCK_OK, onesided_lock_exclusive(lock, -1));
        count = count + 1;
        EXPECT(ONESIDED_LOCK_OK, onesided_lock_release(lock));
    }
    return unused;
}

int main(int argc, char **argv)
{
    int second, third, torn_by = 7;
    pthread_t threads[4];
    if (argc != 2)
        return 2;
    EXPECT(ONESIDED_LOCK_NAME, onesided_lock_open("../etc/passwd", &lock));
    EXPECT(ONESIDED_LOCK_NAME, onesided_lock_open("", &lock));
    EXPECT(ONESIDED_LOCK_ARGUMENT, onesided_lock_open(NULL, &lock));
    EXPECT(ONESIDED_LOCK_ARGUMENT, onesided_lock_open("name", NULL));
    EXPECT(ONESIDED_LOCK_FOREIGN, onesided_lock_open_path("/dev/null", &lock));
    EXPECT(ONESIDED_LOCK_SYSTEM, onesided_lock_open_path("/nowhere/at/all", &lock));
    EXPECT(ONESIDED_LOCK_NO_LOCK, onesided_lock_release(0));
    EXPECT(ONESIDED_LOCK_NO_LOCK, onesided_lock_shared(-1, 0));
    EXPECT(ONESIDED_LOCK_NO_LOCK, onesided_lock_close(12345678));
    EXPECT(ONESIDED_LOCK_OK, onesided_lock_open_path(argv[1], &lock));
    EXPECT(ONESIDED_LOCK_OK, onesided_lock_open_path(argv[1], &second));
    EXPECT(ONESIDED_LOCK_NOT_HELD, onesided_lock_release(lock));
    if (strlen(onesided_lock_error()) == 0 || onesided_lock_torn_by() != 0)
        return 3;

    /* Shared several times, by two handles; nobody writes meanwhile. */
    EXPECT(ONESIDED_LOCK_OK, onesided_lock_shared(lock, 0));
    EXPECT(ONESIDED_LOCK_OK, onesided_lock_shared(lock, -1));
    EXPECT(ONESIDED_LOCK_OK, onesided_lock_shared(second, 10));
    EXPECT(ONESIDED_LOCK_NOT_HELD, onesided_lock_clear_torn(lock));
    EXPECT(ONESIDED_LOCK_BUSY, onesided_lock_exclusive(second, 0));
    EXPECT(ONESIDED_LOCK_OK, onesided_lock_release(lock));
    EXPECT(ONESIDED_LOCK_OK, onesided_lock_release(lock));
    EXPECT(ONESIDED_LOCK_OK, onesided_lock_release(second));

    EXPECT(ONESIDED_LOCK_OK, onesided_lock_mend(lock, 0, &torn_by));
    if (torn_by != 0)
        return 4;
    EXPECT(ONESIDED_LOCK_OK, onesided_lock_clear_torn(lock));
    EXPECT(ONESIDED_LOCK_HELD, onesided_lock_close(lock));
    EXPECT(ONESIDED_LOCK_BUSY, onesided_lock_shared(second, 0));
    EXPECT(ONESIDED_LOCK_TIMED_OUT, onesided_lock_shared(second, 20));
    pthread_create(&threads[0], NULL, other_thread, NULL);
    pthread_join(threads[0], NULL);

    pid_t child = fork();
    if (child == 0) {
        int own;
        EXPECT(ONESIDED_LOCK_FORKED, onesided_lock_release(lock));
        EXPECT(ONESIDED_LOCK_FORKED, onesided_lock_shared(second, 0));
        EXPECT(ONESIDED_LOCK_OK, onesided_lock_open_path(argv[1], &own));
        EXPECT(ONESIDED_LOCK_BUSY, onesided_lock_exclusive(own, 0));
        EXPECT(ONESIDED_LOCK_OK, onesided_lock_close(own));
        return 0;
    }
    int status;
    waitpid(child, &status, 0);
    if (status != 0)
        return 5;
    EXPECT(ONESIDED_LOCK_OK, onesided_lock_release(lock));
    EXPECT(ONESIDED_LOCK_OK, onesided_lock_close(second));
    EXPECT(ONESIDED_LOCK_NO_LOCK, onesided_lock_shared(second, 0));
    /* Its number is not the next lock's. */
    EXPECT(ONESIDED_LOCK_OK, onesided_lock_open_path(argv[1], &third));
    EXPECT(ONESIDED_LOCK_NO_LOCK, onesided_lock_shared(second, 0));
    EXPECT(ONESIDED_LOCK_NO_LOCK, onesided_lock_close(second));
    EXPECT(ONESIDED_LOCK_OK, onesided_lock_close(third));

    for (int index = 0; index < 4; index++)
        pthread_create(&threads[index], NULL, adds, NULL);
    for (int index = 0; index < 4; index++)
        pthread_join(threads[index], NULL);
    if (count != 8000)
        return 6;
    if (unlink(argv[1]) != 0)
        return 7;
    EXPECT(ONESIDED_LOCK_REMOVED, onesided_lock_shared(lock, 0));
    EXPECT(ONESIDED_LOCK_REMOVED, onesided_lock_exclusive(lock, 20));
    EXPECT(ONESIDED_LOCK_REMOVED, onesided_lock_mend(lock, -1, NULL));
    if (!strstr(onesided_lock_error(), "was removed"))
        return 8;
    EXPECT(ONESIDED_LOCK_OK, onesided_lock_close(lock));
    EXPECT(ONESIDED_LOCK_OK, onesided_lock_open_path(argv[1], &lock));
    EXPECT(ONESIDED_LOCK_OK, onesided_lock_exclusive(lock, 0));
    EXPECT(ONESIDED_LOCK_OK, onesided_lock_release(lock));
    EXPECT(ONESIDED_LOCK_OK, onesided_lock_close(lock));
    return 0;
}
