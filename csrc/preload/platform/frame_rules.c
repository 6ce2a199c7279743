/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "platform/frame_rules.h"

#include <string.h>

#define REMEMBERED_MAX 4

/* Encodings of pointers. */
#define POINTER_OMITTED 0xff
#define POINTER_FORMAT 0x0f
#define POINTER_BASE 0x70
#define FORMAT_ABSOLUTE 0x00
#define FORMAT_UDATA4 0x03
#define FORMAT_UDATA8 0x04
#define FORMAT_SDATA4 0x0b
#define FORMAT_SDATA8 0x0c
#define BASE_ABSOLUTE 0x00
#define BASE_HERE 0x10
#define TABLE_ENCODING 0x3b /* pointers of 4 bytes, relative to the header */

/* Instructions of call frame information. The first three instructions have an operand in their lower bits. */
enum {
    ADVANCE = 0x40,
    OFFSET = 0x80,
    RESTORE = 0xc0,
    NOP = 0x00,
    SET_LOCATION = 0x01,
    ADVANCE_1 = 0x02,
    ADVANCE_2 = 0x03,
    ADVANCE_4 = 0x04,
    OFFSET_EXTENDED = 0x05,
    RESTORE_EXTENDED = 0x06,
    UNDEFINED = 0x07,
    SAME_VALUE = 0x08,
    REGISTER = 0x09,
    REMEMBER_STATE = 0x0a,
    RESTORE_STATE = 0x0b,
    DEFINE_FRAME = 0x0c,
    DEFINE_FRAME_REGISTER = 0x0d,
    DEFINE_FRAME_OFFSET = 0x0e,
    DEFINE_FRAME_EXPRESSION = 0x0f,
    EXPRESSION = 0x10,
    OFFSET_EXTENDED_SIGNED = 0x11,
    DEFINE_FRAME_SIGNED = 0x12,
    DEFINE_FRAME_OFFSET_SIGNED = 0x13,
    VALUE_OFFSET = 0x14,
    VALUE_OFFSET_SIGNED = 0x15,
    ARGUMENTS_SIZE = 0x2e
};

/* Operations of expressions. */
#define REGISTER_0 0x70 /* REGISTER_0 + N: the value of register N plus an offset */
#define REGISTER_31 0x8f
#define DEREFERENCE 0x06

/* -- bounded reads ------------------------------------------------------------------------------------------------- */

/* A sequence of bytes and the position of the next read. */
struct bytes {
    uintptr_t at, end;
    /* True if the sequence ended too early, or contains an unknown encoding. */
    bool is_bad;
};

static void take(struct bytes *bytes, void *into, size_t count)
{
    memset(into, 0, count);
    if (bytes->is_bad || bytes->end - bytes->at < count) {
        bytes->is_bad = true;
        return;
    }
    memcpy(into, (const void *)bytes->at, count);
    bytes->at += count;
}

#define TAKE(type)                                                                                                     \
    static type take_##type(struct bytes *bytes)                                                                       \
    {                                                                                                                  \
        type taken;                                                                                                    \
                                                                                                                       \
        take(bytes, &taken, sizeof taken);                                                                             \
        return taken;                                                                                                  \
    }
TAKE(uint8_t)
TAKE(uint16_t)
TAKE(uint32_t)
TAKE(int32_t)
TAKE(uint64_t)

static uint64_t take_leb(struct bytes *bytes, bool is_signed)
{
    uint64_t number = 0;
    unsigned shift = 0;
    uint8_t byte;

    do {
        byte = take_uint8_t(bytes);
        if (shift < 64) number |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80 && !bytes->is_bad);
    if (is_signed && byte & 0x40 && shift < 64) number |= ~UINT64_C(0) << shift;
    return number;
}

static uint64_t take_number(struct bytes *bytes)
{
    return take_leb(bytes, false);
}

static int64_t take_signed(struct bytes *bytes)
{
    return (int64_t)take_leb(bytes, true);
}

/* Read the number of a register, and return the register's index in struct state. */
static unsigned take_register(struct bytes *bytes)
{
    const uint64_t number = take_number(bytes);

    return number < IBP_REGISTERS ? (unsigned)number : IBP_REGISTERS;
}

static void skip(struct bytes *bytes, uint64_t count)
{
    if (bytes->is_bad || bytes->end - bytes->at < count)
        bytes->is_bad = true;
    else
        bytes->at += count;
}

static uint64_t take_pointer(struct bytes *bytes, uint8_t encoding)
{
    const uintptr_t here = bytes->at;
    uint64_t pointer = 0;

    switch (encoding & POINTER_FORMAT) {
    case FORMAT_ABSOLUTE:
    case FORMAT_UDATA8:
    case FORMAT_SDATA8:
        pointer = take_uint64_t(bytes);
        break;
    case FORMAT_UDATA4:
        pointer = take_uint32_t(bytes);
        break;
    case FORMAT_SDATA4:
        pointer = (uint64_t)(int64_t)take_int32_t(bytes);
        break;
    default:
        bytes->is_bad = true;
    }
    switch (encoding & POINTER_BASE) {
    case BASE_ABSOLUTE:
        return pointer;
    case BASE_HERE:
        return pointer + here;
    default:
        bytes->is_bad = true;
        return 0;
    }
}

/* -- entries ------------------------------------------------------------------------------------------------------- */

/* A common information entry (CIE): rules that several functions share. */
struct common {
    struct bytes instructions;
    uint64_t code_factor;
    int64_t data_factor;
    uint8_t pointer_encoding;
    bool has_lengths, is_of_signal;
};

/* Return the bytes of an entry after the length at its beginning. If there is no valid entry, set `is_bad`. */
static struct bytes open_entry(const struct ibp_frame_tables *tables, uintptr_t entry)
{
    struct bytes bytes = {entry, tables->end, entry < tables->begin || entry >= tables->end};
    const uint32_t length = take_uint32_t(&bytes);

    /* Length 0 ends a table. UINT32_MAX announces a length of 8 bytes, which compilers do not write. */
    if (!length || length == UINT32_MAX || bytes.end - bytes.at < length) bytes.is_bad = true;
    bytes.end = bytes.at + (bytes.is_bad ? 0 : length);
    return bytes;
}

static void read_augmentation(struct common *common, struct bytes *bytes, const char *letters)
{
    uint64_t length = 0;
    uintptr_t end;

    if (!*letters) return;
    if (*letters != 'z') {
        bytes->is_bad = true;
        return;
    }
    common->has_lengths = true;
    length = take_number(bytes);
    end = bytes->at;
    skip(bytes, length);
    if (bytes->is_bad) return;
    for (struct bytes data = {end, bytes->at, false}; *++letters;) {
        if (*letters == 'R')
            common->pointer_encoding = take_uint8_t(&data);
        else if (*letters == 'L')
            (void)take_uint8_t(&data);
        else if (*letters == 'P')
            (void)take_pointer(&data, take_uint8_t(&data) & (POINTER_FORMAT | BASE_HERE));
        else if (*letters == 'S')
            common->is_of_signal = true;
        else if (*letters != 'B')
            data.is_bad = true;
        bytes->is_bad |= data.is_bad;
        if (data.is_bad) return;
    }
}

static bool read_common(const struct ibp_frame_tables *tables, uintptr_t entry, struct common *common)
{
    struct bytes bytes = open_entry(tables, entry);
    char letters[8] = "";
    uint64_t return_register;
    uint8_t version;

    *common = (struct common){.code_factor = 1};
    if (take_uint32_t(&bytes)) return false; /* only a CIE has the ID 0 */
    version = take_uint8_t(&bytes);
    if (version != 1 && version != 3) return false;
    for (unsigned i = 0; i < sizeof letters; i++) {
        letters[i] = (char)take_uint8_t(&bytes);
        if (!letters[i]) break;
    }
    if (letters[sizeof letters - 1]) return false;
    common->code_factor = take_number(&bytes);
    common->data_factor = take_signed(&bytes);
    return_register = version == 1 ? take_uint8_t(&bytes) : take_number(&bytes);
    read_augmentation(common, &bytes, letters);
    common->instructions = bytes;
    return !bytes.is_bad && return_register == IBP_REGISTER_RETURN;
}

/* Search the sorted table for the last function that begins at or before an instruction. Return the address of the
 * function's entry; 0 if no such function exists. */
static uintptr_t search(const struct ibp_frame_tables *tables, uintptr_t instruction)
{
    struct bytes bytes = {tables->header, tables->header_end, false};
    const uint8_t version = take_uint8_t(&bytes), table = take_uint8_t(&bytes), count = take_uint8_t(&bytes),
                  entries = take_uint8_t(&bytes);
    int32_t pair[2];
    uint64_t below = 0, above;

    if (version != 1 || count != FORMAT_UDATA4 || entries != TABLE_ENCODING) return 0;
    (void)take_pointer(&bytes, table);
    above = take_uint32_t(&bytes);
    if (bytes.is_bad || above > (bytes.end - bytes.at) / sizeof pair) return 0;
    while (below < above) {
        const uint64_t middle = below + (above - below) / 2;

        memcpy(pair, (const void *)(bytes.at + middle * sizeof pair), sizeof pair);
        if (tables->header + (uintptr_t)(intptr_t)pair[0] <= instruction)
            below = middle + 1;
        else
            above = middle;
    }
    if (!below) return 0;
    memcpy(pair, (const void *)(bytes.at + (below - 1) * sizeof pair), sizeof pair);
    return tables->header + (uintptr_t)(intptr_t)pair[1];
}

/* -- instructions -------------------------------------------------------------------------------------------------- */

/* The current rules of the registers. All registers that ibprof does not track share the last element. */
struct state {
    struct ibp_value_place frame, registers[IBP_REGISTERS + 1];
};

struct machine {
    const struct common *common;
    struct bytes bytes;
    uintptr_t location;
    struct state now, first, remembered[REMEMBERED_MAX];
    unsigned depth;
};

static struct ibp_value_place place(struct machine *machine, enum ibp_value_form form, unsigned base, int64_t offset)
{
    if (offset != (int32_t)offset || base >= IBP_REGISTERS) machine->bytes.is_bad = true;
    return (struct ibp_value_place){(uint8_t)form, (uint8_t)base, (int32_t)offset};
}

static int64_t factored(const struct machine *machine, int64_t number)
{
    return (int64_t)((uint64_t)number * (uint64_t)machine->common->data_factor);
}

/* Read a DWARF expression. Compilers write two forms: the sum of a register and an offset is the value, or is the
 * address of the value. Return IBP_VALUE_NONE for all other forms. */
static struct ibp_value_place take_expression(struct machine *machine, enum ibp_value_form itself,
                                              enum ibp_value_form in_memory)
{
    const uint64_t length = take_number(&machine->bytes);
    struct bytes expression = {machine->bytes.at, machine->bytes.at, false};
    struct ibp_value_place found;
    uint8_t operation;

    skip(&machine->bytes, length);
    expression.end = machine->bytes.at;
    operation = take_uint8_t(&expression);
    if (operation < REGISTER_0 || operation > REGISTER_31) expression.is_bad = true;
    found = place(machine, itself, (unsigned)(operation - REGISTER_0) % IBP_REGISTERS, take_signed(&expression));
    if (operation - REGISTER_0 >= IBP_REGISTERS) expression.is_bad = true;
    if (!expression.is_bad && expression.at < expression.end) {
        found.form = (uint8_t)in_memory;
        if (take_uint8_t(&expression) != DEREFERENCE || expression.at < expression.end) expression.is_bad = true;
    }
    return expression.is_bad ? (struct ibp_value_place){.form = IBP_VALUE_NONE} : found;
}

static void set_frame_offset(struct machine *machine, int64_t offset)
{
    machine->now.frame = place(machine, IBP_VALUE_OF_REGISTER, machine->now.frame.base, offset);
}

static void set_frame(struct machine *machine, unsigned base, int64_t offset)
{
    machine->now.frame = place(machine, IBP_VALUE_OF_REGISTER, base, offset);
}

/* Advance the location. Return false if the new location is beyond `until`. */
static bool advance(struct machine *machine, uint64_t by, uintptr_t until)
{
    machine->location += by * machine->common->code_factor;
    return machine->location <= until;
}

static void run_one(struct machine *machine, uint8_t operation)
{
    struct bytes *const bytes = &machine->bytes;
    struct ibp_value_place *const registers = machine->now.registers;
    unsigned number;

    switch (operation) {
    case NOP:
        return;
    case OFFSET_EXTENDED:
    case OFFSET_EXTENDED_SIGNED:
        number = take_register(bytes);
        registers[number] =
            place(machine, IBP_VALUE_AT_FRAME, 0,
                  factored(machine, operation == OFFSET_EXTENDED ? (int64_t)take_number(bytes) : take_signed(bytes)));
        return;
    case VALUE_OFFSET:
    case VALUE_OFFSET_SIGNED:
        number = take_register(bytes);
        registers[number] =
            place(machine, IBP_VALUE_OF_FRAME, 0,
                  factored(machine, operation == VALUE_OFFSET ? (int64_t)take_number(bytes) : take_signed(bytes)));
        return;
    case RESTORE_EXTENDED:
        number = take_register(bytes);
        registers[number] = machine->first.registers[number];
        return;
    case UNDEFINED:
        registers[take_register(bytes)].form = IBP_VALUE_NONE;
        return;
    case SAME_VALUE:
        registers[take_register(bytes)].form = IBP_VALUE_SAME;
        return;
    case REGISTER:
        number = take_register(bytes);
        registers[number] = place(machine, IBP_VALUE_OF_REGISTER, take_register(bytes), 0);
        return;
    case REMEMBER_STATE:
        if (machine->depth == REMEMBERED_MAX)
            bytes->is_bad = true;
        else
            machine->remembered[machine->depth++] = machine->now;
        return;
    case RESTORE_STATE:
        if (!machine->depth)
            bytes->is_bad = true;
        else
            machine->now = machine->remembered[--machine->depth];
        return;
    case DEFINE_FRAME:
        number = take_register(bytes);
        set_frame(machine, number, (int64_t)take_number(bytes));
        return;
    case DEFINE_FRAME_SIGNED:
        number = take_register(bytes);
        set_frame(machine, number, factored(machine, take_signed(bytes)));
        return;
    case DEFINE_FRAME_REGISTER:
        set_frame(machine, take_register(bytes), machine->now.frame.offset);
        return;
    case DEFINE_FRAME_OFFSET:
        set_frame_offset(machine, (int64_t)take_number(bytes));
        return;
    case DEFINE_FRAME_OFFSET_SIGNED:
        set_frame_offset(machine, factored(machine, take_signed(bytes)));
        return;
    case DEFINE_FRAME_EXPRESSION:
        machine->now.frame = take_expression(machine, IBP_VALUE_OF_REGISTER, IBP_VALUE_AT_REGISTER);
        return;
    case EXPRESSION:
        number = take_register(bytes);
        /* The result of the expression is the address of the value. If the expression itself reads memory, ibprof does
         * not understand it. */
        registers[number] = take_expression(machine, IBP_VALUE_AT_REGISTER, IBP_VALUE_NONE);
        return;
    case ARGUMENTS_SIZE:
        (void)take_number(bytes);
        return;
    default:
        bytes->is_bad = true;
    }
}

/* Execute instructions until the first instruction that applies to code after `until`. */
static void run(struct machine *machine, uintptr_t until)
{
    while (!machine->bytes.is_bad && machine->bytes.at < machine->bytes.end) {
        const uint8_t byte = take_uint8_t(&machine->bytes), operand = byte & 0x3f;
        struct ibp_value_place *const of_operand =
            &machine->now.registers[operand < IBP_REGISTERS ? operand : IBP_REGISTERS];

        if ((byte & 0xc0) == ADVANCE) {
            if (!advance(machine, operand, until)) return;
        } else if ((byte & 0xc0) == OFFSET) {
            *of_operand =
                place(machine, IBP_VALUE_AT_FRAME, 0, factored(machine, (int64_t)take_number(&machine->bytes)));
        } else if ((byte & 0xc0) == RESTORE) {
            *of_operand = machine->first.registers[of_operand - machine->now.registers];
        } else if (byte == ADVANCE_1) {
            if (!advance(machine, take_uint8_t(&machine->bytes), until)) return;
        } else if (byte == ADVANCE_2) {
            if (!advance(machine, take_uint16_t(&machine->bytes), until)) return;
        } else if (byte == ADVANCE_4) {
            if (!advance(machine, take_uint32_t(&machine->bytes), until)) return;
        } else if (byte == SET_LOCATION) {
            machine->location = take_pointer(&machine->bytes, machine->common->pointer_encoding);
            if (machine->location > until) return;
        } else {
            run_one(machine, byte);
        }
    }
}

bool ibp_frame_rule_find(const struct ibp_frame_tables *tables, uintptr_t instruction, struct ibp_frame_rule *rule)
{
    const uintptr_t entry = search(tables, instruction);
    struct machine machine = {.depth = 0};
    struct common common;
    struct bytes bytes;
    uintptr_t own;
    uint64_t range;

    if (!entry) return false;
    bytes = open_entry(tables, entry);
    own = bytes.at;
    if (!read_common(tables, own - take_uint32_t(&bytes), &common)) return false;
    if (common.pointer_encoding == POINTER_OMITTED) return false;
    machine.location = take_pointer(&bytes, common.pointer_encoding);
    range = take_pointer(&bytes, common.pointer_encoding & POINTER_FORMAT);
    if (common.has_lengths) skip(&bytes, take_number(&bytes));
    if (bytes.is_bad || instruction - machine.location >= range) return false;
    machine.common = &common;
    machine.bytes = common.instructions;
    run(&machine, instruction);
    if (machine.bytes.is_bad) return false;
    machine.first = machine.now;
    machine.bytes = bytes;
    run(&machine, instruction);
    if (machine.bytes.is_bad) return false;
    rule->frame = machine.now.frame;
    memcpy(rule->registers, machine.now.registers, sizeof rule->registers);
    rule->is_of_signal = common.is_of_signal;
    return rule->frame.form == IBP_VALUE_OF_REGISTER || rule->frame.form == IBP_VALUE_AT_REGISTER;
}
