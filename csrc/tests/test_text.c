/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "check.h"
#include "platform/log.h"
#include "platform/text.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <string.h>
#include <unistd.h>

static void cuts_what_does_not_fit(void)
{
    char text[6];

    ibp_text_copy(text, sizeof text, "longer than six");
    CHECK(!strcmp(text, "longe"));
    ibp_text_copy(text, sizeof text, "ab");
    ibp_text_append(text, sizeof text, "cdef");
    CHECK(!strcmp(text, "abcde"));
    ibp_text_append(text, sizeof text, "x");
    CHECK(!strcmp(text, "abcde"));
}

static void reads_numbers_as_sysfs_writes_them(void)
{
    CHECK(ibp_text_number("4: ACTIVE") == 4);
    CHECK(ibp_text_number("0x1f") == 31);
    CHECK(ibp_text_number("0x0002c903000A0001") == UINT64_C(0x0002c903000a0001));
    CHECK(ibp_text_number("100 Gb/sec") == 100);
    CHECK(ibp_text_number("") == 0);
    CHECK(ibp_text_number("none") == 0);
}

static void distinguishes_strings_by_hash(void)
{
    CHECK(ibp_text_hash(IBP_HASH_START, "ab") != ibp_text_hash(IBP_HASH_START, "ba"));
    /* a chained hash depends on the boundary between strings */
    CHECK(ibp_text_hash(ibp_text_hash(IBP_HASH_START, "ab"), "c") !=
          ibp_text_hash(ibp_text_hash(IBP_HASH_START, "a"), "bc"));
}

static void says_one_line_whatever_it_is_given(void)
{
    int ends[2];
    char line[8192];
    ssize_t length;
    const int kept = dup(STDERR_FILENO);

    CHECK(!pipe(ends) && dup2(ends[1], STDERR_FILENO) >= 0);
    ibp_say("this is not the stderr that the program began with");
    ibp_note_stderr();
    ibp_say("two\nlines and \033[31m colour: %s", "x");
    CHECK(dup2(kept, STDERR_FILENO) >= 0);
    ibp_note_stderr();
    length = read(ends[0], line, sizeof line - 1);
    CHECK(length > 0);
    line[length] = '\0';
    CHECK(!strcmp(line, "ibprof: two lines and  [31m colour: x\n"));
}

/* Messages must not end a program whose stderr is a pipe without a reader, or a file at its size limit. */
static void never_dies_of_what_it_says(void)
{
    static const struct rlimit none = {0, RLIM_INFINITY};
    const pid_t child = fork();
    int ends[2], status, signals;
    sigset_t pending;

    if (!child) {
        if (pipe(ends) || close(ends[0]) || dup2(ends[1], STDERR_FILENO) < 0) _exit(1);
        ibp_note_stderr();
        ibp_say("nobody hears this");
        if (dup2(fileno(tmpfile()), STDERR_FILENO) < 0 || setrlimit(RLIMIT_FSIZE, &none)) _exit(2);
        ibp_note_stderr();
        ibp_say("this does not fit");
        signals = sigpending(&pending) || sigismember(&pending, SIGPIPE) || sigismember(&pending, SIGXFSZ);
        _exit(signals ? 3 : 0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
}

int main(void)
{
    cuts_what_does_not_fit();
    reads_numbers_as_sysfs_writes_them();
    distinguishes_strings_by_hash();
    says_one_line_whatever_it_is_given();
    never_dies_of_what_it_says();
    return 0;
}
