/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Lists of N parameters (PARAMETERS_N) and N arguments (ARGUMENTS_N) of a wrapped call. All arguments are integers or
 * pointers. In Linux calling conventions, an argument needs one register or one slot of the stack.
 */
#ifndef IBPROF_CALLS_ARGUMENTS_H
#define IBPROF_CALLS_ARGUMENTS_H

#define PARAMETERS_1 long a0
#define PARAMETERS_2 PARAMETERS_1, long a1
#define PARAMETERS_3 PARAMETERS_2, long a2
#define PARAMETERS_4 PARAMETERS_3, long a3
#define PARAMETERS_5 PARAMETERS_4, long a4
#define PARAMETERS_6 PARAMETERS_5, long a5
#define PARAMETERS_7 PARAMETERS_6, long a6
#define PARAMETERS_8 PARAMETERS_7, long a7
#define PARAMETERS_9 PARAMETERS_8, long a8
#define PARAMETERS_10 PARAMETERS_9, long a9
#define PARAMETERS_11 PARAMETERS_10, long a10
#define PARAMETERS_12 PARAMETERS_11, long a11

#define ARGUMENTS_1 a0
#define ARGUMENTS_2 ARGUMENTS_1, a1
#define ARGUMENTS_3 ARGUMENTS_2, a2
#define ARGUMENTS_4 ARGUMENTS_3, a3
#define ARGUMENTS_5 ARGUMENTS_4, a4
#define ARGUMENTS_6 ARGUMENTS_5, a5
#define ARGUMENTS_7 ARGUMENTS_6, a6
#define ARGUMENTS_8 ARGUMENTS_7, a7
#define ARGUMENTS_9 ARGUMENTS_8, a8
#define ARGUMENTS_10 ARGUMENTS_9, a9
#define ARGUMENTS_11 ARGUMENTS_10, a10
#define ARGUMENTS_12 ARGUMENTS_11, a11

/* ITEMS_N: the first N items of an array, as a list of arguments. */
#define ITEMS_1(array) (array)[0]
#define ITEMS_2(array) ITEMS_1(array), (array)[1]
#define ITEMS_3(array) ITEMS_2(array), (array)[2]
#define ITEMS_4(array) ITEMS_3(array), (array)[3]
#define ITEMS_5(array) ITEMS_4(array), (array)[4]
#define ITEMS_6(array) ITEMS_5(array), (array)[5]
#define ITEMS_7(array) ITEMS_6(array), (array)[6]
#define ITEMS_8(array) ITEMS_7(array), (array)[7]
#define ITEMS_9(array) ITEMS_8(array), (array)[8]
#define ITEMS_10(array) ITEMS_9(array), (array)[9]
#define ITEMS_11(array) ITEMS_10(array), (array)[10]
#define ITEMS_12(array) ITEMS_11(array), (array)[11]

#endif
