/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Other users can guess names of recordings. A file under the guessed name stays unchanged, and no process waits for
 * it. The recording gets another name.
 */
#include "check.h"
#include "counting/count.h"
#include "recording/operations.h"
#include "recording/recording.h"
#include "recording/storage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534
#define PEERS 2000
#define VICTIM "somebody's own"

static char recorded[600], victim[600];

static void count_to_all(void)
{
    for (uint32_t peer = 0; peer < PEERS; peer++)
        ibp_count(IBP_OPERATION_Send, IBP_KIND_USER, IBP_DIRECTION_SENT, peer, 1);
}

static struct ibp_process *start(const char *folder)
{
    char why[256] = "";
    struct ibp_process *process = ibp_recording_open(folder, why, sizeof why);

    if (!process) fprintf(stderr, "%s\n", why);
    CHECK(process && !ibp_counters_open(process, IBP_SOURCE_OPENMPI));
    return process;
}

static void in_child(void (*body)(const char *), const char *argument)
{
    const pid_t child = fork();
    int status;

    if (!child) {
        alarm(20); /* nothing waits */
        body(argument);
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
}

static void record(const char *folder)
{
    const struct ibp_process *process = start(folder);

    count_to_all();
    CHECK(!process->lost_messages);
}

/* Set `recorded` to the path of a first run's recording. A second run with the same name would join this file. */
static void find_recording(const char *folder)
{
    DIR *opened = opendir(folder);
    const struct dirent *entry;

    CHECK(opened);
    while ((entry = readdir(opened)))
        if (strstr(entry->d_name, ".ibprof")) snprintf(recorded, sizeof recorded, "%s/%s", folder, entry->d_name);
    closedir(opened);
    CHECK(strstr(recorded, "-0.ibprof"));
}

static void make_victim(const char *folder)
{
    int file;

    snprintf(victim, sizeof victim, "%s/victim", folder);
    file = open(victim, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && write(file, VICTIM, strlen(VICTIM)) == (ssize_t)strlen(VICTIM) && !close(file));
}

static void check_victim(void)
{
    char text[64] = "";
    const int file = open(victim, O_RDONLY);

    CHECK(file >= 0 && read(file, text, sizeof text - 1) == (ssize_t)strlen(VICTIM) && !strcmp(text, VICTIM));
    close(file);
}

/* Return the size of the recording, whose name differs from the guessed name. */
static long size_of_next(void)
{
    char path[600];
    struct stat status;

    snprintf(path, sizeof path, "%s", recorded);
    strcpy(strstr(path, "-0.ibprof"), "-1.ibprof");
    return stat(path, &status) ? -1 : (long)status.st_size;
}

/* -- files under the guessed name before a run --------------------------------------------------------------------- */

static void put_link(void)
{
    CHECK(!symlink(victim, recorded));
}

static void put_dangling_link(void)
{
    CHECK(!symlink("/nowhere/at/all", recorded));
}

static void put_hard_link(void)
{
    CHECK(!link(victim, recorded));
}

static void put_fifo(void)
{
    CHECK(!mkfifo(recorded, 0666));
}

static void put_folder(void)
{
    CHECK(!mkdir(recorded, 0777));
}

static void put_socket(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    const int made = socket(AF_UNIX, SOCK_STREAM, 0);

    CHECK(made >= 0 && !bind(made, (const struct sockaddr *)&address, sizeof address));
    CHECK(!rename("socket", recorded) && !close(made));
}

static void put_short_file(void)
{
    const int file = open(recorded, O_WRONLY | O_CREAT | O_EXCL, 0644);

    CHECK(file >= 0 && write(file, "IBPROFRC", 8) == 8 && !close(file));
}

static void (*const put_before[])(void) = {put_link,   put_dangling_link, put_hard_link, put_fifo,
                                           put_folder, put_socket,        put_short_file};

static void something_lies_there(const char *folder)
{
    in_child(record, folder);
    find_recording(folder);
    for (size_t i = 0; i < sizeof put_before / sizeof *put_before; i++) {
        char next[600];

        make_victim(folder);
        CHECK(!unlink(recorded));
        put_before[i]();
        in_child(record, folder);
        check_victim();
        CHECK(size_of_next() > (long)(PEERS * sizeof(struct ibp_counter)));
        snprintf(next, sizeof next, "%s", recorded);
        strcpy(strstr(next, "-0.ibprof"), "-1.ibprof");
        CHECK(!unlink(next) && !remove(recorded));
        in_child(record, folder);
    }
}

/* A recording of this launch is not used if it belongs to another user, because that user could shorten the file. */
static void a_file_of_another_user(const char *folder)
{
    struct stat before, after;

    CHECK(!geteuid()); /* as in a container */
    in_child(record, folder);
    find_recording(folder);
    CHECK(!chown(recorded, NOBODY, NOBODY) && !chmod(recorded, 0666) && !stat(recorded, &before));
    in_child(record, folder);
    CHECK(!stat(recorded, &after) && after.st_size == before.st_size);
    CHECK(size_of_next() > (long)(PEERS * sizeof(struct ibp_counter)));
}

/* Another user can create a user's folder on a node's storage, in /tmp or /dev/shm, before the user does. */
static void node_folders_of_others(const char *folder)
{
    char made[700], chosen[700];

    CHECK(!setenv("TMPDIR", folder, 1));
    snprintf(made, sizeof made, "%s/ibprof-%lu", folder, (unsigned long)geteuid());
    CHECK(!symlink("/", made));
    CHECK(ibp_storage_folder(0, chosen, sizeof chosen) == EPERM && !unlink(made));
    CHECK(!mkdir(made, 0700) && !chmod(made, 0777));
    CHECK(ibp_storage_folder(0, chosen, sizeof chosen) == EPERM && !chmod(made, 0700));
    CHECK(!chown(made, NOBODY, NOBODY));
    CHECK(ibp_storage_folder(0, chosen, sizeof chosen) == EPERM && !rmdir(made));
    CHECK(!mkfifo(made, 0666));
    CHECK(ibp_storage_folder(0, chosen, sizeof chosen) == EPERM && !unlink(made));
    CHECK(!ibp_storage_folder(0, chosen, sizeof chosen) && !strcmp(chosen, made));
}

/* -- changes of the file during a run ------------------------------------------------------------------------------ */

static void replace_and_grow(const char *folder)
{
    const struct ibp_process *process = start(folder);

    find_recording(folder);
    CHECK(!unlink(recorded));
    put_link();
    count_to_all();
    CHECK(process->lost_messages > 0);
}

static void a_link_comes_while_running(const char *folder)
{
    make_victim(folder);
    in_child(replace_and_grow, folder);
    check_victim();
}

static void fifo_and_grow(const char *folder)
{
    const struct ibp_process *process = start(folder);

    find_recording(folder);
    CHECK(!unlink(recorded));
    put_fifo();
    count_to_all();
    CHECK(process->lost_messages > 0);
}

static void a_fifo_comes_while_running(const char *folder)
{
    in_child(fifo_and_grow, folder);
}

/* A user other than root cannot shorten a file that the user's own processes map, not even by `> FILE`. */
static void shorten_as_owner(const char *folder)
{
    struct stat before, after;

    CHECK(!setgid(NOBODY) && !setuid(NOBODY));
    start(folder);
    find_recording(folder);
    for (int i = 0; i < 2; i++) {
        CHECK(!stat(recorded, &before));
        CHECK(truncate(recorded, 0) && errno == EACCES);
        CHECK(open(recorded, O_WRONLY | O_TRUNC) < 0 && errno == EACCES);
        CHECK(!stat(recorded, &after) && after.st_size == before.st_size && !(after.st_mode & 0222));
        count_to_all(); /* the recording still grows */
    }
    CHECK(before.st_size > (long)(PEERS * sizeof(struct ibp_counter)));
}

static void nobody_shortens_a_recording(const char *folder)
{
    CHECK(!chmod(folder, 0777));
    in_child(shorten_as_owner, folder);
}

/* Many processes open the file at the same time. Each process makes the file writable for a moment. */
static void many_grow_at_once(const char *folder)
{
    enum { PROCESSES = 24 };

    CHECK(!chmod(folder, 0777));
    for (int i = 0; i < PROCESSES; i++)
        if (!fork()) {
            CHECK(!setgid(NOBODY) && !setuid(NOBODY));
            record(folder);
            _exit(0);
        }
    for (int i = 0; i < PROCESSES; i++) {
        int status;

        CHECK(wait(&status) > 0 && WIFEXITED(status) && !WEXITSTATUS(status));
    }
    find_recording(folder);
    CHECK(size_of_next() < 0);
}

int main(void)
{
    void (*const tests[])(const char *) = {
        something_lies_there,       a_file_of_another_user,      node_folders_of_others, a_link_comes_while_running,
        a_fifo_comes_while_running, nobody_shortens_a_recording, many_grow_at_once};
    char no_names[64];

    ibp_operations_select("", no_names, sizeof no_names);
    setenv("PMIX_NAMESPACE", "guessed@1", 1);
    setenv("PMIX_SERVER_URI4", "guessed:4711", 1);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        const char *folder = make_test_folder();

        CHECK(!chdir(folder));
        in_child(tests[i], folder);
    }
    return 0;
}
