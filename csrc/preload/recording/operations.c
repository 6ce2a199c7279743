/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "recording/operations.h"
#include "platform/text.h"

#include "ibprof_recording.h"

#include <string.h>
#include <strings.h>

static const char *const call_names[IBP_OPERATIONS] = {
    [IBP_OPERATION_NONE] = "None",
    [IBP_OPERATION_UNATTRIBUTED] = "Unattributed",
#define IBP_CALL(name, arguments, kind, communicator) [IBP_OPERATION_##name] = #name,
#define IBP_POINT_TO_POINT(name) [IBP_OPERATION_##name] = #name,
#include "mpi.def"
#undef IBP_CALL
#undef IBP_POINT_TO_POINT
};

const char *ibp_operation_call(unsigned operation)
{
    return call_names[operation];
}

bool ibp_operation_wanted[IBP_OPERATIONS + 1];
bool ibp_operations_filtered;

static void want_all(bool wanted)
{
    memset(ibp_operation_wanted, wanted, sizeof ibp_operation_wanted);
    ibp_operations_filtered = !wanted;
}

const char *ibp_operation_name(unsigned operation)
{
    static char upper[IBP_OPERATIONS][IBP_OPERATION_NAME_BYTES];
    char *name = upper[operation];

    if (!name[0])
        for (unsigned i = 0; call_names[operation][i] && i + 1 < IBP_OPERATION_NAME_BYTES; i++) {
            const char letter = call_names[operation][i];

            name[i] = letter >= 'a' && letter <= 'z' ? (char)(letter - 'a' + 'A') : letter;
        }
    return name;
}

static unsigned find_operation(const char *name)
{
    if (!strncasecmp(name, "MPI_", 4)) name += 4;
    for (unsigned operation = IBP_OPERATION_UNATTRIBUTED; operation < IBP_OPERATIONS; operation++)
        if (!strcasecmp(name, call_names[operation])) return operation;
    return IBP_OPERATION_NONE;
}

unsigned ibp_operations_select(const char *list, char *unknown, unsigned bytes)
{
    static const char separators[] = ", \t;:";
    unsigned known = 0, unknowns = 0;

    unknown[0] = '\0';
    list += strspn(list, separators);
    want_all(false);
    while (*list) {
        const size_t length = strcspn(list, separators);
        char name[IBP_OPERATION_NAME_BYTES + 8];
        unsigned operation;

        ibp_text_copy(name, length < sizeof name ? length + 1 : sizeof name, list);
        operation = find_operation(name);
        ibp_operation_wanted[operation] = true;
        if (operation == IBP_OPERATION_NONE) {
            if (unknowns++) ibp_text_append(unknown, bytes, ", ");
            ibp_text_append(unknown, bytes, name);
        } else {
            known++;
        }
        list += length;
        list += strspn(list, separators);
    }
    if (!known) want_all(true);
    ibp_operation_wanted[IBP_OPERATION_NONE] = false;
    ibp_operation_wanted[IBP_OPERATION_UNWANTED] = false;
    return unknowns;
}

void ibp_operations_list(char *into, unsigned bytes)
{
    into[0] = '\0';
    for (unsigned operation = IBP_OPERATION_UNATTRIBUTED; operation < IBP_OPERATIONS; operation++) {
        if (into[0]) ibp_text_append(into, bytes, ", ");
        ibp_text_append(into, bytes, ibp_operation_name(operation));
    }
}
