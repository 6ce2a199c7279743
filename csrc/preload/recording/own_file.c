/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "recording/own_file.h"
#include "recording/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODE (S_IRUSR | S_IRGRP | S_IROTH)
#define ATTEMPTS 100

/* Close a file that must not be used, and set errno. */
static int refuse(int file, int error)
{
    close(file);
    errno = error;
    return -1;
}

int ibp_own_file_create(const char *path)
{
    const int file = ibp_storage_open(path, O_RDWR | O_CREAT | O_EXCL, MODE);
    struct stat status;

    if (file < 0) return -1;
    if (ibp_storage_status(file, &status) || status.st_uid != geteuid()) {
        unlink(path);
        return refuse(file, EPERM);
    }
    /* The umask may have removed permissions that other processes of the host need. */
    if (!(status.st_mode & S_IRUSR)) (void)fchmod(file, S_IRUSR);
    return file;
}

/* Return whether an error shows that a path is a link, a socket, a device without a driver, or another user's file. */
static bool is_something_else(const char *path, int error)
{
    struct stat status;

    if (error == ELOOP || error == ENXIO || error == ENODEV) return true;
    return error == EACCES && !ibp_storage_status_of(path, &status);
}

int ibp_own_file_open(const char *path)
{
    const int file = ibp_storage_open(path, O_RDONLY, 0);
    struct stat status;

    if (file < 0) {
        if (is_something_else(path, errno)) errno = EEXIST;
        return -1;
    }
    if (ibp_storage_status(file, &status) || !S_ISREG(status.st_mode) || status.st_uid != geteuid())
        return refuse(file, EEXIST);
    return file;
}

int ibp_own_file_open_to_write(const char *path, int reader)
{
    struct stat status, opened;
    unsigned attempts = 0;
    int file, error;

    if (ibp_storage_status(reader, &status)) return -1;
    do { /* repeat, because another process may make the file read-only between fchmod and open */
        (void)fchmod(reader, (status.st_mode & 07777) | S_IWUSR);
        file = ibp_storage_open(path, O_RDWR, 0);
        error = errno;
        (void)fchmod(reader, status.st_mode & 07777 & ~(mode_t)(S_IWUSR | S_IWGRP | S_IWOTH));
    } while (file < 0 && error == EACCES && attempts++ < ATTEMPTS);
    errno = error;
    if (file < 0) return -1;
    if (ibp_storage_status(file, &opened) || opened.st_dev != status.st_dev || opened.st_ino != status.st_ino)
        return refuse(file, ESTALE);
    return file;
}

int ibp_own_file_is_regular(int file)
{
    struct stat status;

    return !ibp_storage_status(file, &status) && S_ISREG(status.st_mode);
}
