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
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Network file systems, and file systems of user-space programs, by f_type of statfs(2). Sources: the kernel's
 * linux/magic.h, and the code of file systems that are not part of the kernel. */
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
    0xbacbacbc, /* shared folders of VMware */
};

/* On supported systems, the kernel and the C library have the same struct stat. */
int ibp_storage_status(int file, struct stat *status)
{
    return (int)syscall(SYS_fstat, file, status);
}

int ibp_storage_status_of(const char *path, struct stat *status)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

/* A word of a line of /proc/self/mountinfo, cut if it is too long. */
struct word {
    char text[32];
    size_t length;
    unsigned number; /* index of the word in its line, from 0 */
};

static void add_character(struct word *word, char character)
{
    if (word->length + 1 < sizeof word->text) word->text[word->length++] = character;
    word->text[word->length] = '\0';
}

/* Find the file system type in the line of a device: ID, parent, major:minor, ..., "-", type, ... */
static bool find_type(int mounts, const char *device, const char *type)
{
    struct word word = {"", 0, 0};
    bool of_device = false, after_dash = false;
    char text[4096];
    ssize_t length;

    while ((length = read(mounts, text, sizeof text)) > 0)
        for (ssize_t i = 0; i < length; i++) {
            if (text[i] != ' ' && text[i] != '\n') {
                add_character(&word, text[i]);
                continue;
            }
            if (word.number == 2) of_device = !strcmp(word.text, device);
            if (of_device && after_dash) return !strcmp(word.text, type);
            after_dash = word.number > 2 && !strcmp(word.text, "-");
            word = (struct word){"", 0, text[i] == '\n' ? 0 : word.number + 1};
        }
    return false;
}

/* Return whether a folder is on a mounted file system of the given type. */
static bool is_mount_of(const char *folder, const char *type)
{
    struct stat status;
    char device[32];
    bool found;
    int mounts;

    if (syscall(SYS_newfstatat, AT_FDCWD, folder, &status, 0)) return false;
    mounts = ibp_storage_open("/proc/self/mountinfo", O_RDONLY, 0);
    if (mounts < 0) return false;
    snprintf(device, sizeof device, "%u:%u", major(status.st_dev), minor(status.st_dev));
    found = find_type(mounts, device, type);
    close(mounts);
    return found;
}

bool ibp_storage_is_remote(const char *folder)
{
    struct statfs status;

    if (statfs(folder, &status)) return false;
    for (size_t i = 0; i < sizeof remote_types / sizeof *remote_types; i++)
        if ((uint32_t)status.f_type == remote_types[i]) return true;
    /* For 9P, statfs may return the type of the server's file system, so read the type of the mount. Source: Linux,
     * v9fs_statfs in fs/9p/vfs_super.c */
    return is_mount_of(folder, "9p");
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
    /* Use no folder of another user: all users may create folders in /tmp and /dev/shm. */
    if (ibp_storage_status_of(folder, &status)) return errno;
    if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || status.st_mode & (S_IWGRP | S_IWOTH)) return EPERM;
    return 0;
}

int ibp_storage_open(const char *path, int flags, mode_t mode)
{
    int file;

    do file = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode);
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
