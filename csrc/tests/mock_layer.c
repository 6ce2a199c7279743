/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Two mock libraries. With -DMPI, this file is an MPI library that calls mock_layer. Without -DMPI, this file is the
 * library that defines mock_layer.
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
