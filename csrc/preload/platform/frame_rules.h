/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Rules to compute the registers of a function's caller from the registers of the function. Compilers write these rules
 * as DWARF call frame information to the section .eh_frame. On x86-64, ibprof understands the DWARF instructions that
 * compilers write for calls. Tables may be damaged, so ibprof reads nothing outside of the segment that contains them.
 */
#ifndef IBPROF_PLATFORM_FRAME_RULES_H
#define IBPROF_PLATFORM_FRAME_RULES_H

#include <stdbool.h>
#include <stdint.h>

/* DWARF numbers the general registers from 0 to 15; register 16 is the return address. */
#define IBP_REGISTERS 17
#define IBP_REGISTER_FRAME 6
#define IBP_REGISTER_STACK 7
#define IBP_REGISTER_RETURN 16

/* Forms of a rule. A rule states where to find the value that a register has in the caller. */
enum ibp_value_form {
    /* The value is in the same register. */
    IBP_VALUE_SAME,
    /* The value is in memory, at this address: the frame's address plus an offset, or a register's value plus an
     * offset. */
    IBP_VALUE_AT_FRAME,
    IBP_VALUE_AT_REGISTER,
    /* The value is the frame's address plus an offset, or a register's value plus an offset. */
    IBP_VALUE_OF_FRAME,
    IBP_VALUE_OF_REGISTER,
    /* The value is lost. If the return address is lost, the function has no caller. */
    IBP_VALUE_NONE
};

struct ibp_value_place {
    uint8_t form; /* enum ibp_value_form */
    uint8_t base; /* register */
    int32_t offset;
};

struct ibp_frame_rule {
    /* The frame's address: the value that the stack pointer will have after the return. */
    struct ibp_value_place frame;
    struct ibp_value_place registers[IBP_REGISTERS];
    /* True if a signal interrupted the caller. The return address is then the address of the interrupted instruction,
     * not the address after a call. */
    bool is_of_signal;
};

/* An object's tables: .eh_frame_hdr, and the loaded segment with .eh_frame_hdr and .eh_frame. */
struct ibp_frame_tables {
    uintptr_t header, header_end;
    uintptr_t begin, end;
};

/* Find the rule at an instruction. Return false if the tables have no rule, or a rule that ibprof does not
 * understand. */
bool ibp_frame_rule_find(const struct ibp_frame_tables *tables, uintptr_t instruction, struct ibp_frame_rule *rule);

#endif
