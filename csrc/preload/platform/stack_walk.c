/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "platform/system.h"
#include "platform/stack_walk.h"
#include "platform/loaded_objects.h"
#include "platform/mapped_range.h"

#include <link.h>
#include <stdint.h>
#include <string.h>

#define FRAMES_MAX 256
#define WORD sizeof(uintptr_t)

/* Attributes for functions that read other functions' frames, or memory that another thread may change: sanitizers
 * would report these reads as errors. */
#define READS_STACKS __attribute__((no_sanitize_address))
#define READS_SHARED __attribute__((no_sanitize_thread))

enum step {
    STEPPED,
    /* The system started the function, so no caller exists. */
    OUTERMOST,
    /* The caller of the function cannot be found. */
    LOST
};

/* -- this thread's stack ------------------------------------------------------------------------------------------- */

/* The memory range of the stack that this thread walked last. */
static IBP_THREAD_LOCAL struct ibp_mapped_range stack;

/* Return whether the address `least` is readable. Search the mapped memory if the address is outside of `stack`: in the
 * first walk of a thread, on the stack of a signal handler, or after the stack has grown. */
static bool enter_stack(uintptr_t least)
{
    return least - stack.begin < stack.end - stack.begin || ibp_mapped_range_find(least, &stack);
}

/* Return whether an interval of addresses is in the used part of the stack, and begins at a multiple of the word
 * size. */
static inline bool has_words(uintptr_t begin, uintptr_t end, uintptr_t least)
{
    return begin % WORD == 0 && begin >= least && begin < end && end <= stack.end;
}

/* Read a word that is known to be in the stack. */
static READS_STACKS inline uintptr_t word_at(uintptr_t address)
{
    return *(const volatile uintptr_t *)address;
}

/* Read a word of the stack. Return false if the address is outside of the stack. */
static bool read_word(uintptr_t address, uintptr_t least, uintptr_t *word)
{
    if (!has_words(address, address + WORD, least)) return false;
    *word = word_at(address);
    return true;
}

/* -- objects ------------------------------------------------------------------------------------------------------- */

/* The loaded segment that contains an address. */
struct part {
    uintptr_t begin, end;
    bool is_code;
};

static struct part part_of(const struct dl_phdr_info *info, uintptr_t address)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const uintptr_t begin = info->dlpi_addr + part->p_vaddr;

        if (part->p_type == PT_LOAD && part->p_flags & PF_R && address - begin < part->p_filesz)
            return (struct part){begin, begin + part->p_filesz, part->p_flags & PF_X};
    }
    return (struct part){.begin = 0};
}

#if defined(__x86_64__)
#include "platform/frame_rules.h"
#include "platform/memory.h"

/* Cache of steps from functions to their callers. A hash of the instruction's address selects NEIGHBOURS entries. */
#define STEPS 512
#define NEIGHBOURS 4

/* How to find the caller of a function whose execution has reached `instruction`. */
struct known_step {
    /* 0 if the entry is free or a thread is changing it. Other threads may read an entry at any time. */
    uintptr_t instruction;
    enum { BY_RULE, BY_FRAME_POINTER, TO_NOBODY } how;
    struct ibp_value_place frame;
    /* The registers whose values differ between the function and its caller; in most functions only a few. If the stack
     * pointer is not among these registers, the caller's stack pointer is the frame's address. */
    unsigned count;
    uint8_t numbers[IBP_REGISTERS];
    struct ibp_value_place places[IBP_REGISTERS];
    bool is_of_signal;
    /* Lowest offset of the values in `places`, if all are in memory below the frame's address; otherwise 0. */
    int32_t lowest;
};

static struct known_step *steps;
static char steps_changing;

bool ibp_stack_walk_prepare(void)
{
    if (!steps && ibp_can_visit_objects()) steps = ibp_memory_map(STEPS * sizeof *steps);
    return steps;
}

void ibp_stack_walk_forget(void)
{
    for (size_t i = 0; steps && i < STEPS; i++) __atomic_store_n(&steps[i].instruction, 0, __ATOMIC_RELAXED);
}

struct search {
    uintptr_t address;
    bool is_found;
    /* `header` is 0 if the object has no tables. */
    struct ibp_frame_tables tables;
};

static int visit(struct dl_phdr_info *info, size_t bytes, void *into)
{
    struct search *search = into;

    (void)bytes;
    if (!part_of(info, search->address).is_code) return 0;
    search->is_found = true;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        const uintptr_t begin = info->dlpi_addr + header->p_vaddr;
        const struct part part = part_of(info, begin);

        if (header->p_type == PT_GNU_EH_FRAME && part.end && part.end - begin >= header->p_memsz)
            search->tables = (struct ibp_frame_tables){begin, begin + header->p_memsz, part.begin, part.end};
    }
    return 1;
}

static void set_rule(struct known_step *known, const struct ibp_frame_rule *rule)
{
    known->how = rule->registers[IBP_REGISTER_RETURN].form == IBP_VALUE_NONE ? TO_NOBODY : BY_RULE;
    known->frame = rule->frame;
    known->is_of_signal = rule->is_of_signal;
    known->count = 0;
    for (uint8_t i = 0; i < IBP_REGISTERS; i++) {
        if (rule->registers[i].form == IBP_VALUE_SAME || rule->registers[i].form == IBP_VALUE_NONE) continue;
        known->numbers[known->count] = i;
        known->places[known->count++] = rule->registers[i];
    }
    known->lowest = 0;
    for (unsigned i = 0; i < known->count; i++) {
        const struct ibp_value_place place = known->places[i];
        const bool is_below = place.form == IBP_VALUE_AT_FRAME && place.offset < 0 && place.offset % (int32_t)WORD == 0;

        if (!is_below) {
            known->lowest = 0;
            return;
        }
        if (place.offset < known->lowest) known->lowest = place.offset;
    }
}

/* Set `found` to the step from the function that contains an instruction to the function's caller. Return false if the
 * instruction is in no object. */
static bool find_step(uintptr_t instruction, struct known_step *found)
{
    struct search search = {.address = instruction};
    struct ibp_frame_rule rule;

    ibp_visit_objects(visit, &search);
    found->instruction = instruction;
    if (search.tables.header && ibp_frame_rule_find(&search.tables, instruction, &rule))
        set_rule(found, &rule);
    else
        found->how = BY_FRAME_POINTER;
    return search.is_found;
}

/* Return the cache entry of an instruction. If the instruction is not cached, return the entry in which its step shall
 * be stored. */
static struct known_step *known_place(uintptr_t instruction)
{
    const uint64_t hash = instruction * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    struct known_step *const first = &steps[hash % STEPS / NEIGHBOURS * NEIGHBOURS];

    for (unsigned i = 0; i < NEIGHBOURS; i++) {
        const uintptr_t known = __atomic_load_n(&first[i].instruction, __ATOMIC_RELAXED);

        if (known == instruction || !known) return &first[i];
    }
    return &first[hash % NEIGHBOURS];
}

static READS_SHARED void keep(const struct known_step *found)
{
    struct known_step *const known = known_place(found->instruction);

    if (__atomic_test_and_set(&steps_changing, __ATOMIC_ACQUIRE)) return; /* another thread is changing the cache */
    __atomic_store_n(&known->instruction, 0, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memcpy((char *)known + sizeof known->instruction, (const char *)found + sizeof found->instruction,
           sizeof *known - sizeof known->instruction);
    __atomic_store_n(&known->instruction, found->instruction, __ATOMIC_RELEASE);
    __atomic_clear(&steps_changing, __ATOMIC_RELEASE);
}

/* -- frames -------------------------------------------------------------------------------------------------------- */

struct frame {
    uintptr_t registers[IBP_REGISTERS];
    /* True if the function continues exactly at the address: a signal interrupted the function there, or the walk
     * begins there. If false, the address follows a call. */
    bool is_exact;
};

static inline bool value_of(const struct frame *frame, struct ibp_value_place place, uintptr_t address,
                            uintptr_t *value)
{
    const uintptr_t offset = (uintptr_t)(intptr_t)place.offset, least = frame->registers[IBP_REGISTER_STACK];

    switch (place.form) {
    case IBP_VALUE_AT_FRAME:
        return read_word(address + offset, least, value);
    case IBP_VALUE_AT_REGISTER:
        return read_word(frame->registers[place.base % IBP_REGISTERS] + offset, least, value);
    case IBP_VALUE_OF_FRAME:
        *value = address + offset;
        return true;
    case IBP_VALUE_OF_REGISTER:
        *value = frame->registers[place.base % IBP_REGISTERS] + offset;
        return true;
    default:
        return false;
    }
}

/* Registers of the caller, before they replace the registers of the frame. */
struct found_registers {
    unsigned count;
    uintptr_t address, values[IBP_REGISTERS];
};

/* Read the caller's registers. Return false if a register cannot be read. */
static READS_SHARED bool read_registers(const struct frame *frame, const struct known_step *known,
                                        struct found_registers *found)
{
    const int32_t lowest = __atomic_load_n(&known->lowest, __ATOMIC_RELAXED);

    found->count = __atomic_load_n(&known->count, __ATOMIC_RELAXED);
    if (found->count > IBP_REGISTERS || !value_of(frame, known->frame, 0, &found->address)) return false;
    if (IBP_LIKELY(lowest)) {
        if (!has_words(found->address + (uintptr_t)(intptr_t)lowest, found->address,
                       frame->registers[IBP_REGISTER_STACK]))
            return false;
        for (unsigned i = 0; i < found->count; i++) {
            const int32_t offset = known->places[i].offset;

            if ((uint32_t)offset < (uint32_t)lowest) return false; /* another thread is changing the step */
            found->values[i] = word_at(found->address + (uintptr_t)(intptr_t)offset);
        }
        return true;
    }
    for (unsigned i = 0; i < found->count; i++)
        if (!value_of(frame, known->places[i], found->address, &found->values[i])) return false;
    return true;
}

static READS_SHARED enum step step_by_rule(struct frame *frame, const struct known_step *known,
                                           const struct found_registers *found)
{
    const uintptr_t before = frame->registers[IBP_REGISTER_STACK];

    frame->registers[IBP_REGISTER_STACK] = found->address;
    for (unsigned i = 0; i < found->count; i++) frame->registers[known->numbers[i] % IBP_REGISTERS] = found->values[i];
    frame->is_exact = known->is_of_signal;
    /* Stacks grow downwards, so the caller's frame is at a higher address. Only a signal handler's caller may have
     * another stack. */
    return frame->is_exact || frame->registers[IBP_REGISTER_STACK] > before ? STEPPED : LOST;
}

/* The frame pointer of a function is the address at which the function has stored the caller's frame pointer. The
 * return address follows the caller's frame pointer. */
static enum step step_by_frame_pointer(struct frame *frame)
{
    const uintptr_t pointer = frame->registers[IBP_REGISTER_FRAME], least = frame->registers[IBP_REGISTER_STACK];
    uintptr_t words[2];

    if (!pointer) return OUTERMOST;
    if (!read_word(pointer, least, &words[0]) || !read_word(pointer + sizeof *words, least, &words[1])) return LOST;
    frame->registers[IBP_REGISTER_FRAME] = words[0];
    frame->registers[IBP_REGISTER_RETURN] = words[1];
    frame->registers[IBP_REGISTER_STACK] = pointer + sizeof words;
    frame->is_exact = false;
    return STEPPED;
}

static READS_SHARED enum step step_as(struct frame *frame, const struct known_step *known)
{
    struct found_registers found;

    if (known->how == TO_NOBODY) return OUTERMOST;
    if (known->how == BY_FRAME_POINTER) return step_by_frame_pointer(frame);
    return read_registers(frame, known, &found) ? step_by_rule(frame, known, &found) : LOST;
}

/* Go to the caller by a cached step. Return LOST if the step is not cached, or if the caller cannot be found. */
static READS_SHARED enum step step_as_before(struct frame *frame, uintptr_t instruction)
{
    const struct known_step *const known = known_place(instruction);
    struct frame caller = *frame;
    enum step how;

    if (IBP_UNLIKELY(__atomic_load_n(&known->instruction, __ATOMIC_ACQUIRE) != instruction)) return LOST;
    how = step_as(&caller, known);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (IBP_UNLIKELY(__atomic_load_n(&known->instruction, __ATOMIC_RELAXED) != instruction)) return LOST;
    if (how == STEPPED) *frame = caller;
    return how;
}

static __attribute__((noinline)) enum step step_anew(struct frame *frame, uintptr_t instruction)
{
    struct known_step found = {.count = 0};

    if (!find_step(instruction, &found)) return LOST;
    keep(&found);
    return step_as(frame, &found);
}

/* Go to the caller. */
static enum step step(struct frame *frame)
{
    /* After a call, look up the byte before the return address, because the return address may belong to the next
     * function. */
    const uintptr_t instruction = frame->registers[IBP_REGISTER_RETURN] - !frame->is_exact;
    enum step how = step_as_before(frame, instruction);

    if (IBP_UNLIKELY(how == LOST)) how = step_anew(frame, instruction);
    return how == STEPPED && !enter_stack(frame->registers[IBP_REGISTER_STACK]) ? LOST : how;
}

/* Read the registers that a called function must preserve. */
#define REGISTERS_HERE(frame)                                                                                          \
    __asm__ volatile("lea 1f(%%rip), %%rax\n"                                                                          \
                     "mov %%rax, 128(%0)\n"                                                                            \
                     "mov %%rbx, 24(%0)\n"                                                                             \
                     "mov %%rbp, 48(%0)\n"                                                                             \
                     "mov %%rsp, 56(%0)\n"                                                                             \
                     "mov %%r12, 96(%0)\n"                                                                             \
                     "mov %%r13, 104(%0)\n"                                                                            \
                     "mov %%r14, 112(%0)\n"                                                                            \
                     "mov %%r15, 120(%0)\n"                                                                            \
                     "1:\n"                                                                                            \
                     :                                                                                                 \
                     : "r"((frame)->registers)                                                                         \
                     : "rax", "memory")

#elif defined(__aarch64__)

bool ibp_stack_walk_prepare(void)
{
    return ibp_can_visit_objects();
}

#define IBP_REGISTER_RETURN 0
#define IBP_REGISTER_STACK 1

struct frame {
    uintptr_t registers[2];
    uintptr_t pointer;
};

static int visit(struct dl_phdr_info *info, size_t bytes, void *into)
{
    (void)bytes;
    return part_of(info, *(const uintptr_t *)into).is_code;
}

/* Cache of addresses that are known to be code of a loaded object. Some bits of an address select its entry. */
#define KNOWN 256
static uintptr_t known_code[KNOWN];

void ibp_stack_walk_forget(void)
{
    for (size_t i = 0; i < KNOWN; i++) __atomic_store_n(&known_code[i], 0, __ATOMIC_RELAXED);
}

static bool is_code(uintptr_t address)
{
    uintptr_t *const place = &known_code[address / 4 % KNOWN];

    if (__atomic_load_n(place, __ATOMIC_RELAXED) == address) return true;
    if (!ibp_visit_objects(visit, &address)) return false;
    __atomic_store_n(place, address, __ATOMIC_RELAXED);
    return true;
}

/* Remove the pointer authentication code from a return address. */
static uintptr_t without_signature(uintptr_t address)
{
    register uintptr_t signed_one __asm__("x30") = address;

    __asm__("hint 7" : "+r"(signed_one)); /* xpaclri, which older processors ignore */
    return signed_one;
}

/* A frame begins with the caller's frame pointer; the return address follows. */
static enum step step(struct frame *frame)
{
    const uintptr_t least = frame->registers[IBP_REGISTER_STACK], pointer = frame->pointer;
    uintptr_t words[2], caller;

    if (!pointer) return OUTERMOST;
    if (!read_word(pointer, least, &words[0]) || !read_word(pointer + sizeof *words, least, &words[1])) return LOST;
    caller = without_signature(words[1]) - 1;
    if (!is_code(caller)) return LOST;
    *frame = (struct frame){{caller + 1, pointer + sizeof words}, words[0]};
    return STEPPED;
}

#define REGISTERS_HERE(into)                                                                                           \
    (*(into) = (struct frame){{0, (uintptr_t)__builtin_frame_address(0)}, (uintptr_t)__builtin_frame_address(0)})

#else

bool ibp_stack_walk_prepare(void)
{
    return false;
}

void ibp_stack_walk_forget(void)
{
}

#define IBP_REGISTER_RETURN 0
#define IBP_REGISTER_STACK 0
struct frame {
    uintptr_t registers[1];
};
static enum step step(struct frame *frame)
{
    (void)frame;
    return LOST;
}
#define REGISTERS_HERE(frame) ((frame)->registers[0] = (uintptr_t)__builtin_frame_address(0))

#endif

__attribute__((noinline)) void ibp_stack_walk(ibp_frame_seen *seen, void *into)
{
    struct frame frame = {.registers = {0}};
    enum step how;

    REGISTERS_HERE(&frame);
#if defined(__x86_64__)
    frame.is_exact = true;
#endif
    if (!enter_stack(frame.registers[IBP_REGISTER_STACK])) return;
    how = step(&frame);
    for (unsigned depth = 0; how == STEPPED && depth < FRAMES_MAX; depth++) {
        const void *const address = (const void *)frame.registers[IBP_REGISTER_RETURN];

        how = step(&frame);
        if (how == OUTERMOST || !seen(into, address)) return;
    }
}
