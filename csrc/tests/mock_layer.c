/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * What an MPI library calls and what calls an MPI library, made up: with -DMPI a library of that name, which passes its argument
 * on to the layer below, and else that layer.
 */
#ifdef MPI
int mock_layer(int value);
int MPI(int value);

int MPI(int value)
{
    return mock_layer(value) + 1;
}
#else
int mock_layer(int value);

int mock_layer(int value)
{
    return 10 * value;
}
#endif
