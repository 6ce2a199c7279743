/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A mock MPI library, and the mock layer below it. With -DMPI this file is the MPI library, which passes its argument
 * on to the layer. Without -DMPI, this file is the layer.
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
