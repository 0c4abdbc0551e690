/* Fails the n-th write or sync of files whose path has a text in it; loaded into a process of the tests. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static long calls;

/* Whether this call fails; errno is set then. */
static int fails(int fd) {
    static const char *part, *at, *code, *stays;
    char link[64], path[4096];
    ssize_t length;
    long number;
    if (!part) {
        part = getenv("FAIL_PATH");
        at = getenv("FAIL_AT");
        code = getenv("FAIL_CODE");
        stays = getenv("FAIL_STAYS");
        if (!part) part = "";
    }
    if (!*part || !at || !code) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    if (!strstr(path, part)) return 0;
    number = __sync_add_and_fetch(&calls, 1);
    if (number != atol(at) && !(stays && number > atol(at))) return 0;
    if (number == atol(at)) {
        const char *mark = getenv("FAIL_MARK");
        FILE *file = mark ? fopen(mark, "w") : 0;
        if (file) fclose(file);
    }
    errno = atoi(code);
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *bytes, size_t count) {
    return fails(fd) ? -1 : REAL(write)(fd, bytes, count);
}
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    return fails(fd) ? -1 : REAL(pwrite)(fd, bytes, count, at);
}
ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    return fails(fd) ? -1 : REAL(pwrite64)(fd, bytes, count, at);
}
int fsync(int fd) {
    return fails(fd) ? -1 : REAL(fsync)(fd);
}
int fdatasync(int fd) {
    return fails(fd) ? -1 : REAL(fdatasync)(fd);
}
int ftruncate(int fd, off_t length) {
    return fails(fd) ? -1 : REAL(ftruncate)(fd, length);
}
int ftruncate64(int fd, off64_t length) {
    return fails(fd) ? -1 : REAL(ftruncate64)(fd, length);
}
