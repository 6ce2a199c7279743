/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Functions by which a C or C++ program marks regions for ibprof. The program need not be linked to libibprof.so
 * (-libprof). Without the library, the functions do nothing. Call the functions between MPI_Init and MPI_Finalize, from
 * one thread at a time. Below MPI_THREAD_SERIALIZED, calls from threads other than the thread that initialised MPI are
 * ignored.
 *
 *     for (step = 0; step < steps; step++) {
 *         exchange();
 *         IBPROF_REGION();                     // region FILE:LINE gets the traffic since the last region
 *     }
 *
 *     ibprof_region_begin("transpose");        // or: a region with a name; regions may be nested
 *     MPI_Alltoall(...);
 *     ibprof_region_end();
 *
 * Traffic belongs to the innermost region in which it is sent. If a program enters a region several times, ibprof sums
 * the region's traffic.
 */
#ifndef IBPROF_H
#define IBPROF_H

#ifdef __cplusplus
extern "C" {
#endif

/* ibprof_region: assign traffic to region `name`, after the traffic was sent. The call assigns all traffic that was
 * sent since the last call of ibprof_region or ibprof_region_at and belongs to no named region yet. The first call
 * assigns the traffic since MPI_Init. ibprof_region_at: assign the same traffic to region FILE:LINE. */
void ibprof_region(const char *name) __attribute__((weak));
void ibprof_region_at(const char *file, int line) __attribute__((weak));

/* ibprof_region_begin: enter a named region. ibprof_region_end: leave the region that was entered last. */
void ibprof_region_begin(const char *name) __attribute__((weak));
void ibprof_region_end(void) __attribute__((weak));

/* ibprof_off: stop counting, as MPI_Pcontrol(0) does. ibprof_on: continue counting, as MPI_Pcontrol(1) does. */
void ibprof_off(void) __attribute__((weak));
void ibprof_on(void) __attribute__((weak));

#ifdef __cplusplus
}
#endif

#ifndef IBPROF_IMPLEMENTATION

#define IBPROF_REGION() (ibprof_region_at ? ibprof_region_at(__FILE__, __LINE__) : (void)0)
#define ibprof_region(name) (ibprof_region ? ibprof_region(name) : (void)0)
#define ibprof_region_begin(name) (ibprof_region_begin ? ibprof_region_begin(name) : (void)0)
#define ibprof_region_end() (ibprof_region_end ? ibprof_region_end() : (void)0)
#define ibprof_off() (ibprof_off ? ibprof_off() : (void)0)
#define ibprof_on() (ibprof_on ? ibprof_on() : (void)0)

#endif
#endif
