/* A disk that takes writes and fails to keep them: fsync and fdatasync fail from the n-th call of the process on, where n is
   UPTACK_TEST_SYNC_FAILS_FROM. Tests compile this and preload it. */

#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_long calls;

static int sync_by(long number, int file) {
    const char *from = getenv("UPTACK_TEST_SYNC_FAILS_FROM");
    if (from != NULL && atomic_fetch_add(&calls, 1) + 1 >= atol(from)) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(number, file);
}

int fsync(int file) {
    return sync_by(SYS_fsync, file);
}

int fdatasync(int file) {
    return sync_by(SYS_fdatasync, file);
}
