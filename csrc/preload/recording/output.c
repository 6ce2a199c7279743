/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "recording/output.h"
#include "platform/text.h"
#include "recording/job_name.h"
#include "recording/scheduler.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Replace all characters of a name except letters, digits and a few signs by '_'. */
static void make_file_name(char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

    for (; *name; name++)
        if (!strchr(allowed, *name)) *name = '_';
}

/* Expand %h (host), %N (host without domain), %% (percent sign), and the letters of ibp_scheduler_value. Unknown
 * letters remain unchanged. */
static void expand_output(const char *output, const char *host, const char *job, char *into, size_t bytes)
{
    into[0] = '\0';
    for (; *output; output++) {
        const char sign[] = {*output, '\0'};
        const char *value = NULL;
        char name[256];

        if (output[0] == '%') value = output[1] == 'h' || output[1] == 'N' ? host : ibp_scheduler_value(output[1], job);
        if (value) {
            ibp_text_copy(name, sizeof name, value);
            if (output[1] == 'N') name[strcspn(name, ".")] = '\0';
            make_file_name(name);
            ibp_text_append(into, bytes, name);
        } else {
            ibp_text_append(into, bytes, sign);
        }
        if (value || (output[0] == '%' && output[1] == '%')) output++;
    }
}

static int make_folder(char *path)
{
    int parent_error = 0;

    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0777) && errno != EEXIST && !parent_error) parent_error = errno;
        *slash = '/';
    }
    if (!mkdir(path, 0777) || errno == EEXIST) return 0;
    return errno == ENOENT && parent_error ? parent_error : errno;
}

void ibp_output_identify(struct ibp_file_header *identity)
{
    memset(identity, 0, sizeof *identity);
    if (gethostname(identity->host, sizeof identity->host - 1))
        ibp_text_copy(identity->host, sizeof identity->host, "unknown");
    ibp_job_identify(identity->job, sizeof identity->job, identity->launch, sizeof identity->launch);
    ibp_text_copy(identity->run, sizeof identity->run, ibp_environment("IBPROF_RUN"));
    ibp_text_copy(identity->library_version, sizeof identity->library_version, IBP_VERSION);
}

int ibp_output_make_folder(const char *output, const struct ibp_file_header *identity, char *folder, size_t bytes)
{
    char expanded[PATH_MAX];

    expand_output(output, identity->host, identity->job, expanded, sizeof expanded);
    folder[0] = '\0';
    if (expanded[0] != '/') {
        if (!getcwd(folder, bytes)) folder[0] = '\0';
        ibp_text_append(folder, bytes, "/");
    }
    ibp_text_append(folder, bytes, expanded);
    return make_folder(folder);
}

void ibp_output_stem(const struct ibp_file_header *identity, char *stem, size_t bytes)
{
    uint64_t hash = ibp_text_hash(IBP_HASH_START, identity->job);
    char host[64];

    ibp_text_copy(host, sizeof host, identity->host);
    make_file_name(host);
    hash = ibp_text_hash(hash, identity->launch);
    hash = ibp_text_hash(hash, identity->run);
    snprintf(stem, bytes, "%s-%016llx", host, (unsigned long long)hash);
}
