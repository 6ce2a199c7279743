/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * How the registers of a function's caller are found from its own, as compilers write it into .eh_frame for unwinders:
 * the part of DWARF's call frame information that they use at calls, on x86-64. Tables may be damaged: all reads stay
 * within the part of the object that holds them.
 */
#ifndef IBPROF_PLATFORM_FRAME_RULES_H
#define IBPROF_PLATFORM_FRAME_RULES_H

#include <stdbool.h>
#include <stdint.h>

/* DWARF's numbers of registers: general ones, then the return address. */
#define IBP_REGISTERS 17
#define IBP_REGISTER_FRAME 6
#define IBP_REGISTER_STACK 7
#define IBP_REGISTER_RETURN 16

/* Where the value of the caller's register is. */
enum ibp_value_form {
    /* In the same register. */
    IBP_VALUE_SAME,
    /* In memory at an offset from the frame's address, or from what a register holds. */
    IBP_VALUE_AT_FRAME,
    IBP_VALUE_AT_REGISTER,
    /* It is the frame's address, or what a register holds, plus an offset. */
    IBP_VALUE_OF_FRAME,
    IBP_VALUE_OF_REGISTER,
    /* Nowhere. A function without a return address has no caller. */
    IBP_VALUE_NONE
};

struct ibp_value_place {
    uint8_t form; /* enum ibp_value_form */
    uint8_t base; /* register */
    int32_t offset;
};

struct ibp_frame_rule {
    /* The frame's address: what the stack pointer is after the return. */
    struct ibp_value_place frame;
    struct ibp_value_place registers[IBP_REGISTERS];
    /* A signal interrupted the caller: its address is that of an instruction, not behind a call. */
    bool is_of_signal;
};

/* An object's tables: .eh_frame_hdr, and the loaded part of the object that holds it and .eh_frame. */
struct ibp_frame_tables {
    uintptr_t header, header_end;
    uintptr_t begin, end;
};

/* Find the rule at an instruction. Return false where the tables have none, or one that is not understood. */
bool ibp_frame_rule_find(const struct ibp_frame_tables *tables, uintptr_t instruction, struct ibp_frame_rule *rule);

#endif
