/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The program's own notes of its messages. At the end, each rank writes the notes to $TALLY/RANK, in lines of OPERATION
 * SENDER RECEIVER BYTES MESSAGES. None of these numbers is from MPI.
 */
#ifndef TALLY_H
#define TALLY_H

#include <stdio.h>
#include <stdlib.h>

#define TALLY_MAX (1 << 16)

static struct tally {
    const char *operation;
    int sender, receiver;
    long bytes, messages;
} tally_rows[TALLY_MAX];
static int tally_used;

static void tally_add(const char *operation, int sender, int receiver, long bytes)
{
    if (tally_used == TALLY_MAX) abort();
    tally_rows[tally_used++] = (struct tally){operation, sender, receiver, bytes, 1};
}

static void tally_write(int me)
{
    char path[4096];
    FILE *file;

    if (!getenv("TALLY")) return;
    snprintf(path, sizeof path, "%s/%d", getenv("TALLY"), me);
    file = fopen(path, "w");
    if (!file) abort();
    for (int i = 0; i < tally_used; i++) {
        const struct tally *row = &tally_rows[i];

        fprintf(file, "%s %d %d %ld %ld\n", row->operation, row->sender, row->receiver, row->bytes, row->messages);
    }
    if (fclose(file)) abort();
}

#endif
