/* Preloaded into a writer: its clock is wrong by WRONG_BY_S seconds.
 *
 * And where a log store looks whether a commit's name is free and then renames to it, as Hadoop's does on a local disk,
 * which replaces what came between: such a rename fails here where the name is taken, as it does on the file systems
 * that the store is made for. Hadoop then copies the file over; that fails, too.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long wrong_by(void) {
    static long seconds, is_known;
    if (!is_known) {
        const char *text = getenv("WRONG_BY_S");
        seconds = text ? atol(text) : 0;
        is_known = 1;
    }
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += wrong_by();
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    int result = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return result;
}

time_t time(time_t *place) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (place) *place = now.tv_sec;
    return now.tv_sec;
}

/* A commit: 20 digits and .json, in the log. */
static int is_commit(const char *path) {
    const char *name = strrchr(path, '/');
    return name && strlen(name) == 26 && !strcmp(name + 21, ".json") && strspn(name + 1, "0123456789") == 20
        && name - path >= 10 && !strncmp(name - 10, "_delta_log", 10);
}

int rename(const char *from, const char *to) {
    static int (*real)(const char *, const char *);
    if (!real) real = dlsym(RTLD_NEXT, "rename");
    if (!is_commit(to)) return real(from, to);
    if (link(from, to)) return -1;
    return unlink(from);
}

static int open_with(const char *symbol, const char *path, int flags, mode_t mode) {
    int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, symbol);
    if ((flags & O_TRUNC) && is_commit(path) && !access(path, F_OK)) {
        errno = EEXIST;
        return -1;
    }
    return real(path, flags, mode);
}

#define OPEN(name)                                                  \
    int name(const char *path, int flags, ...) {                    \
        va_list more;                                               \
        va_start(more, flags);                                      \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; \
        va_end(more);                                               \
        return open_with(#name, path, flags, mode);                 \
    }

OPEN(open)
OPEN(open64)
