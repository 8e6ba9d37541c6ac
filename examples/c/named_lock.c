/*
 * Two processes that share nothing but a name: one moves money between two accounts and is killed in
 * mid-write; the other, which waits for the lock, is told, mends the accounts, and both a third
 * process and it go on.
 *
 *   cc named_lock.c -o named_lock -Ionesided/bindings/named-lock-c/include -L... -lonesided_lock
 *   ./named_lock [name]
 */
#define _XOPEN_SOURCE 700
#include <onesided_lock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TOTAL = 100 };

static char accounts[] = "/tmp/accounts-XXXXXX";

static void check(const char *what, int code)
{
    if (code != ONESIDED_LOCK_OK) {
        fprintf(stderr, "%s: code %d: %s\n", what, code, onesided_lock_error());
        exit(1);
    }
}

static void store(int first, int second)
{
    FILE *file = fopen(accounts, "w");
    if (!file || fprintf(file, "%d %d\n", first, second) < 0 || fclose(file) != 0) {
        perror(accounts);
        exit(1);
    }
}

static void load(int *first, int *second)
{
    FILE *file = fopen(accounts, "r");
    if (!file || fscanf(file, "%d %d", first, second) != 2) {
        perror(accounts);
        exit(1);
    }
    fclose(file);
}

/* Moves `amount`, under the lock; if there is somebody to tell, stays in the middle of it. */
static void move(int amount, int tell)
{
    int first, second;
    load(&first, &second);
    store(first - amount, second);
    if (tell >= 0) {
        /* The parent reads this, and then kills this process. */
        if (write(tell, "!", 1) != 1)
            exit(1);
        pause();
    }
    store(first - amount, second + amount);
}

static int open_lock(const char *name)
{
    int lock;
    check("open", onesided_lock_open(name, &lock));
    return lock;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "onesided-example";
    int ready[2], first, second, torn_by;
    if (mkstemp(accounts) < 0 || pipe(ready) != 0) {
        perror("set-up");
        return 1;
    }
    store(60, 40);
    /* So that no child has a copy of unwritten text. */
    setvbuf(stdout, NULL, _IOLBF, 0);

    pid_t victim = fork();
    if (victim == 0) {
        /* Any other program could do this. It opens the lock by itself. */
        int lock = open_lock(name);
        check("exclusive", onesided_lock_exclusive(lock, 5000));
        move(10, ready[1]);
        return 1;
    }

    int lock = open_lock(name);
    char mark;
    if (read(ready[0], &mark, 1) != 1)
        return 1;
    if (onesided_lock_exclusive(lock, 0) != ONESIDED_LOCK_BUSY)
        return 1;
    printf("process %d holds the lock and writes\n", (int)victim);
    kill(victim, SIGKILL);

    int code = onesided_lock_exclusive(lock, 5000);
    if (code != ONESIDED_LOCK_TORN || onesided_lock_torn_by() != victim) {
        fprintf(stderr, "expected to be told, got code %d: %s\n", code, onesided_lock_error());
        return 1;
    }
    printf("told: %s\n", onesided_lock_error());

    check("mend", onesided_lock_mend(lock, 5000, &torn_by));
    load(&first, &second);
    printf("process %d left %d + %d\n", torn_by, first, second);
    store(first, TOTAL - first);
    check("clear_torn", onesided_lock_clear_torn(lock));
    check("release", onesided_lock_release(lock));

    pid_t other = fork();
    if (other == 0) {
        int own = open_lock(name);
        check("exclusive", onesided_lock_exclusive(own, 5000));
        move(-5, -1);
        check("release", onesided_lock_release(own));
        check("close", onesided_lock_close(own));
        return 0;
    }
    int status;
    waitpid(victim, &status, 0);
    waitpid(other, &status, 0);
    check("shared", onesided_lock_shared(lock, 5000));
    load(&first, &second);
    check("release", onesided_lock_release(lock));
    check("close", onesided_lock_close(lock));
    unlink(accounts);
    if (status != 0 || first + second != TOTAL) {
        fprintf(stderr, "%d + %d is not %d\n", first, second, TOTAL);
        return 1;
    }
    printf("mended, and gone on: %d + %d\n", first, second);
    return 0;
}
