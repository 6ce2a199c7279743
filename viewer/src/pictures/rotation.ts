// SPDX-License-Identifier: Apache-2.0
// Rotations in space: unit quaternions, and the arcball of a pointer.

/** x, y, z, w. */
export type Quaternion = [number, number, number, number];

export const IDENTITY: Quaternion = [0, 0, 0, 1];

/** Return the rotation that applies `first`, then `then`. */
export function combine(then: Quaternion, first: Quaternion): Quaternion {
  const [ax, ay, az, aw] = then;
  const [bx, by, bz, bw] = first;
  return normalise([
    aw * bx + ax * bw + ay * bz - az * by,
    aw * by - ax * bz + ay * bw + az * bx,
    aw * bz + ax * by - ay * bx + az * bw,
    aw * bw - ax * bx - ay * by - az * bz,
  ]);
}

export function normalise(turn: number[]): Quaternion {
  const length = Math.hypot(...turn);
  return length > 1e-9 ? (turn.map((each) => each / length) as Quaternion) : IDENTITY;
}

/**
 * Return the rotation of a drag between two points of a ball. x and y are from -1 to 1, y downwards. Points outside
 * the ball are moved to the rim. A drag along the rim rotates about the line of sight.
 *
 * Source: K. Shoemake, "ARCBALL: a user interface for specifying three-dimensional orientation using a mouse" (1992).
 */
export function arcball(from: [number, number], to: [number, number]): Quaternion {
  const [a, b] = [onBall(from), onBall(to)];
  return normalise([
    a[1] * b[2] - a[2] * b[1],
    a[2] * b[0] - a[0] * b[2],
    a[0] * b[1] - a[1] * b[0],
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2],
  ]);
}

function onBall([x, y]: [number, number]): [number, number, number] {
  const squared = x * x + y * y;
  if (squared <= 1) return [x, y, Math.sqrt(1 - squared)];
  const length = Math.sqrt(squared);
  return [x / length, y / length, 0];
}

/** Return the rotation matrix, row by row. */
export function matrixOf([x, y, z, w]: Quaternion): number[] {
  return [
    ...[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
    ...[2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
    ...[2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
  ];
}
