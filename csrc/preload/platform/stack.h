/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * An address in the current stack frame. The frames of all callers are at higher addresses.
 */
#ifndef IBPROF_PLATFORM_STACK_H
#define IBPROF_PLATFORM_STACK_H

#include <stdint.h>

#if defined(__x86_64__)
register uintptr_t ibp_stack_end __asm__("rsp");
#elif defined(__aarch64__)
register uintptr_t ibp_stack_end __asm__("sp");
#else
#define ibp_stack_end ((uintptr_t)__builtin_frame_address(0))
#endif

#endif
