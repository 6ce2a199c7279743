// SPDX-License-Identifier: Apache-2.0
// Perspective projection of three-dimensional points, which are rotated about their centre.

import { matrixOf, type Quaternion } from "./rotation";

/** Distance of the eye from the centre / radius of the ball that contains all points. */
const EYE = 4;
/** Size of the picture / size of the ball: above 1, since near points are enlarged. */
const ENLARGEMENT = 1.06;

/** The projected nodes and middles of links. `near` is from -1 (far) to 1 (near). */
export class Projection {
  readonly x: Float64Array;
  readonly y: Float64Array;
  readonly near: Float64Array;
  readonly middleX: Float64Array;
  readonly middleY: Float64Array;
  /** Width and height of the picture. */
  readonly size: number;
  private readonly point: Float64Array;
  private readonly radius: number;

  /** `position` has x, y and z of each node, `ends` the two nodes of each link. Middles of links follow the nodes. */
  constructor(
    position: ArrayLike<number>,
    readonly nodes: number,
    ends: ArrayLike<number>,
  ) {
    const count = nodes + ends.length / 2;
    const middle = centreOf(position);
    this.point = new Float64Array(3 * count);
    let farthest = 0;
    for (let node = 0; node < nodes; node++) {
      for (let axis = 0; axis < 3; axis++) this.point[3 * node + axis] = position[3 * node + axis] - middle[axis];
      farthest = Math.max(farthest, Math.hypot(...this.point.subarray(3 * node, 3 * node + 3)));
    }
    for (let link = 0; 2 * link < ends.length; link++)
      for (let axis = 0; axis < 3; axis++)
        this.point[3 * (nodes + link) + axis] =
          (this.point[3 * ends[2 * link] + axis] + this.point[3 * ends[2 * link + 1] + axis]) / 2;
    this.radius = farthest || 1;
    this.size = 2 * ENLARGEMENT * this.radius;
    [this.x, this.y, this.near] = [new Float64Array(count), new Float64Array(count), new Float64Array(count)];
    [this.middleX, this.middleY] = [this.x.subarray(nodes), this.y.subarray(nodes)];
  }

  rotate(rotation: Quaternion): void {
    const [ax, ay, az, bx, by, bz, cx, cy, cz] = matrixOf(rotation);
    const { point, radius, size } = this;
    const eye = EYE * radius;
    for (let at = 0; at < this.x.length; at++) {
      const [x, y, z] = [point[3 * at], point[3 * at + 1], point[3 * at + 2]];
      const near = cx * x + cy * y + cz * z;
      const larger = eye / (eye - near);
      this.x[at] = size / 2 + (ax * x + ay * y + az * z) * larger;
      this.y[at] = size / 2 + (bx * x + by * y + bz * z) * larger;
      this.near[at] = near / radius;
    }
  }
}

/** Return the centre of the positions' bounding box. */
function centreOf(position: ArrayLike<number>): number[] {
  const least = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  const most = least.map((each) => -each);
  for (let at = 0; at < position.length; at++) {
    least[at % 3] = Math.min(least[at % 3], position[at]);
    most[at % 3] = Math.max(most[at % 3], position[at]);
  }
  return least.map((each, axis) => (position.length ? (each + most[axis]) / 2 : 0));
}
