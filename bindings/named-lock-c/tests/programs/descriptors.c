/* A program that has closed its standard descriptors, and writes to them all the same. Says by its code
 * what has gone wrong. Arguments: a path. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <onesided_lock.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int stop, reached;

#define EXPECT(code, call)                                                                           \
    do {                                                                                             \
        if ((call) != (code))                                                                        \
            _exit(__LINE__ % 200 + 10);                                                              \
    } while (0)

/* Writes to descriptors that are closed, as a thread does that keeps a log. */
static void *writes(void *unused)
{
    while (!stop) {
        for (int descriptor = 0; descriptor < 3; descriptor++) {
            char byte;
            if (write(descriptor, "overwritten", 11) >= 0 || read(descriptor, &byte, 1) >= 0)
                reached = 1;
        }
    }
    return unused;
}

/* The library's descriptors are closed on exec, and none is below 3. Returns how many lead to `path`. */
static int check_descriptors(const char *path)
{
    int found = 0;
    DIR *own = opendir("/proc/self/fd");
    if (!own)
        _exit(3);
    for (struct dirent *entry; (entry = readdir(own));) {
        char target[4096];
        int descriptor = atoi(entry->d_name);
        ssize_t length = readlinkat(dirfd(own), entry->d_name, target, sizeof target - 1);
        if (length < 0 || descriptor == dirfd(own))
            continue;
        target[length] = 0;
        if (descriptor < 3)
            _exit(4);
        if (!(fcntl(descriptor, F_GETFD) & FD_CLOEXEC))
            _exit(5);
        found += strcmp(target, path) == 0;
    }
    closedir(own);
    return found;
}

int main(int argc, char **argv)
{
    int lock, ready[2];
    char byte;
    pthread_t thread;
    if (argc != 2)
        return 2;
    /* Anything else that was handed down is none of the library's. */
    for (int descriptor = 0; descriptor < 256; descriptor++)
        close(descriptor);
    EXPECT(ONESIDED_LOCK_OK, onesided_lock_open_path(argv[1], &lock));
    if (check_descriptors(argv[1]) == 0)
        return 6;
    printf("this would be the beginning of the file\n");
    fprintf(stderr, "and so would this\n");
    fflush(NULL);
    /* With files made, opened and closed all the time, and a holder that is looked after. */
    if (pthread_create(&thread, NULL, writes, NULL) != 0)
        return 7;
    for (int turn = 0; turn < 20; turn++) {
        char other[4096];
        int more;
        snprintf(other, sizeof other, "%s-%d", argv[1], turn);
        EXPECT(ONESIDED_LOCK_OK, onesided_lock_open_path(other, &more));
        EXPECT(ONESIDED_LOCK_OK, onesided_lock_close(more));
        EXPECT(ONESIDED_LOCK_OK, onesided_lock_open_path(argv[1], &more));
        EXPECT(ONESIDED_LOCK_OK, onesided_lock_exclusive(more, -1));
        EXPECT(ONESIDED_LOCK_TIMED_OUT, onesided_lock_shared(lock, 12));
        EXPECT(ONESIDED_LOCK_OK, onesided_lock_release(more));
        EXPECT(ONESIDED_LOCK_OK, onesided_lock_close(more));
    }
    stop = 1;
    pthread_join(thread, NULL);
    if (reached)
        return 8;
    /* Another process that holds the lock, and is killed. */
    if (pipe(ready) != 0 || fcntl(ready[0], F_DUPFD, 10) != 10 || fcntl(ready[1], F_DUPFD, 11) != 11)
        return 9;
    close(ready[0]);
    close(ready[1]);
    pid_t child = fork();
    if (child == 0) {
        EXPECT(ONESIDED_LOCK_OK, onesided_lock_open_path(argv[1], &lock));
        EXPECT(ONESIDED_LOCK_OK, onesided_lock_exclusive(lock, -1));
        if (write(11, "!", 1) == 1)
            pause();
        _exit(1);
    }
    close(11);
    if (read(10, &byte, 1) != 1)
        return 9;
    close(10);
    EXPECT(ONESIDED_LOCK_TIMED_OUT, onesided_lock_shared(lock, 20));
    check_descriptors(argv[1]);
    kill(child, SIGKILL);
    EXPECT(ONESIDED_LOCK_TORN, onesided_lock_exclusive(lock, -1));
    EXPECT(child, onesided_lock_torn_by());
    waitpid(child, NULL, 0);
    check_descriptors(argv[1]);
    printf("and this\n");
    fflush(NULL);
    /* The file is what it was: others can open it, and it still says what has happened. */
    int again;
    EXPECT(ONESIDED_LOCK_OK, onesided_lock_open_path(argv[1], &again));
    EXPECT(ONESIDED_LOCK_TORN, onesided_lock_shared(again, 5000));
    return 0;
}
