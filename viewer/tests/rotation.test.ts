// SPDX-License-Identifier: Apache-2.0
// Rotations and the projection of points in space.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Projection } from "../src/pictures/projection";
import { arcball, combine, IDENTITY, matrixOf, normalise, type Quaternion } from "../src/pictures/rotation";

function near(values: ArrayLike<number>, expected: number[]): void {
  assert.equal(values.length, expected.length);
  expected.forEach((value, at) => {
    assert.ok(Math.abs(values[at] - value) < 1e-9, `[${Array.from(values)}] is not [${expected}]`);
  });
}

const HALF = Math.SQRT1_2;
/** 90 degrees about the z axis: x to y, y to -x. */
const ABOUT_Z: Quaternion = [0, 0, HALF, HALF];
const ABOUT_X: Quaternion = [HALF, 0, 0, HALF];

test("a quaternion as a matrix", () => {
  near(matrixOf(IDENTITY), [1, 0, 0, 0, 1, 0, 0, 0, 1]);
  near(matrixOf(ABOUT_Z), [0, -1, 0, 1, 0, 0, 0, 0, 1]);
  near(matrixOf([0, HALF, 0, HALF]), [0, 0, 1, 0, 1, 0, -1, 0, 0]);
});

test("the second rotation applies after the first", () => {
  // x to y about z, then y to z about x: so x to z.
  const [, , , , , , zx] = matrixOf(combine(ABOUT_X, ABOUT_Z));
  near([zx], [1]);
});

test("a quaternion of no length is no rotation", () => {
  assert.deepEqual(normalise([0, 0, 0, 0]), IDENTITY);
  near(normalise([0, 0, 3, 4]), [0, 0, 0.6, 0.8]);
});

test("a drag rotates by twice its angle on the ball (Shoemake)", () => {
  // The drag is from the front of the ball 30 degrees to the right.
  const [x, y, z, w] = arcball([0, 0], [0.5, 0]);
  near([x, y, z], [0, Math.sin(Math.PI / 6), 0]);
  near([w], [Math.cos(Math.PI / 6)]);
  // A drag along the rim, 90 degrees from right to bottom, rolls about the line of sight.
  near(arcball([2, 0], [0, 2]), [0, 0, HALF * Math.SQRT2, 0]);
});

test("points are centred, and near ones enlarged", () => {
  // Two nodes are on the line of sight, at distance 1 from the centre. The eye is at distance 4.
  const projection = new Projection([0, 0, 1, 0, 0, 3], 2, [0, 1]);
  projection.rotate(IDENTITY);
  near(projection.near, [-1, 1, 0]);
  near(projection.x, [1.06, 1.06, 1.06]);
  // Rotated about x: z to -y. Both are at the depth of the centre, so not enlarged.
  projection.rotate(ABOUT_X);
  near(projection.y, [1.06 + 1, 1.06 - 1, 1.06]);
  near(projection.near, [0, 0, 0]);
});

test("a single point and none have a projection", () => {
  const point = new Projection([5, 6, 7], 1, []);
  point.rotate(ABOUT_Z);
  near([point.size, point.x[0], point.y[0], point.near[0]], [2.12, 1.06, 1.06, 0]);
  const none = new Projection([], 0, []);
  none.rotate(IDENTITY);
  near([none.size, none.x.length], [2.12, 0]);
});

test("enlargement is by the distance from the eye", () => {
  const projection = new Projection([0.6, 0, 0.8, -0.6, 0, -0.8], 2, []);
  projection.rotate(IDENTITY);
  near(projection.x, [1.06 + (0.6 * 4) / 3.2, 1.06 - (0.6 * 4) / 4.8]);
});
