/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "recording/storage.h"
#include "platform/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Values of f_type of statfs(2), from the kernel's linux/magic.h and from file systems outside of the kernel. */
static const uint32_t remote_types[] = {
    0x6969,     /* NFS */
    0xff534d42, /* CIFS */
    0xfe534d42, /* SMB 2 and 3 */
    0x517b,     /* SMB 1 */
    0x564c,     /* NCP */
    0x00c36400, /* Ceph */
    0x5346414f, /* AFS */
    0x6b414653, /* kAFS */
    0x73757245, /* Coda */
    0x01021997, /* 9P */
    0x65735546, /* FUSE: sshfs, GlusterFS, BeeOND, s3fs ... */
    0x0bd00bd0, /* Lustre */
    0x47504653, /* GPFS, Storage Scale */
    0x19830326, /* BeeGFS */
    0xaad7aaea, /* PanFS */
    0x7461636f, /* OCFS2 */
    0x01161970, /* GFS2 */
    0x20030528, /* OrangeFS */
    0x786f4256, /* shared folders of VirtualBox */
    0xbacbacbc, /* and of VMware */
};

bool ibp_storage_is_remote(const char *folder)
{
    struct statfs status;

    if (statfs(folder, &status)) return false;
    for (size_t i = 0; i < sizeof remote_types / sizeof *remote_types; i++)
        if ((uint32_t)status.f_type == remote_types[i]) return true;
    return false;
}

/* Call lstat by its number: its symbol needs glibc 2.33. The kernel's struct is the C library's on supported
 * systems. */
static int ask_status(const char *path, struct stat *status)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

int ibp_storage_folder(unsigned n, char *folder, size_t bytes)
{
    const char *const choices[] = {getenv("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm"};
    struct stat status;
    char name[32];

    if (n >= sizeof choices / sizeof *choices) return -1;
    if (!choices[n] || choices[n][0] != '/') return ENOENT;
    if (ibp_storage_is_remote(choices[n])) return EREMOTE;
    ibp_text_copy(folder, bytes, choices[n]);
    snprintf(name, sizeof name, "/ibprof-%lu", (unsigned long)geteuid());
    ibp_text_append(folder, bytes, name);
    if (mkdir(folder, 0700) && errno != EEXIST) return errno;
    /* Everybody may write in such places: do not use a folder that another user made. */
    if (ask_status(folder, &status)) return errno;
    if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || status.st_mode & (S_IWGRP | S_IWOTH)) return EPERM;
    return 0;
}

int ibp_storage_open(const char *path, int flags)
{
    int file;

    do file = open(path, flags | O_CLOEXEC, 0666);
    while (file < 0 && errno == EINTR);

    if (file >= 0 && file <= STDERR_FILENO) {
        const int higher = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        const int error = errno;

        close(file);
        file = higher;
        errno = error;
    }
    return file;
}

int ibp_storage_write(int file, const void *data, size_t bytes, size_t offset)
{
    const char *from = data;
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) || (limit.rlim_cur != RLIM_INFINITY && offset + bytes > limit.rlim_cur))
        return EFBIG;
    while (bytes) {
        const ssize_t written = pwrite(file, from, bytes, (off_t)offset);

        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return written ? errno : EIO;
        from += written;
        offset += (size_t)written;
        bytes -= (size_t)written;
    }
    return 0;
}
