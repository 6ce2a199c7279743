// SPDX-License-Identifier: Apache-2.0
// Points in space as they are seen: turned about their middle, and the larger the nearer.

import { matrixOf, type Turn } from "./rotation";

/** How far the eye is from the middle, in radii of the ball that holds all points. */
const EYE = 4;
/** What is nearer is seen larger, so that the picture is larger than the ball. */
const ROOM = 1.06;

/** Where each node and each link's middle is seen, and how near: from -1, the farthest, to 1. */
export class Projection {
  readonly x: Float64Array;
  readonly y: Float64Array;
  readonly near: Float64Array;
  readonly middleX: Float64Array;
  readonly middleY: Float64Array;
  /** Of the picture, which is as wide as high. */
  readonly size: number;
  private readonly point: Float64Array;
  private readonly radius: number;

  /** `place` has x, y and z of each node; `ends` the two nodes of each link. The links' middles come after the nodes. */
  constructor(
    place: ArrayLike<number>,
    readonly nodes: number,
    ends: ArrayLike<number>,
  ) {
    const count = nodes + ends.length / 2;
    const middle = centreOf(place);
    this.point = new Float64Array(3 * count);
    let farthest = 0;
    for (let node = 0; node < nodes; node++) {
      for (let axis = 0; axis < 3; axis++) this.point[3 * node + axis] = place[3 * node + axis] - middle[axis];
      farthest = Math.max(farthest, Math.hypot(...this.point.subarray(3 * node, 3 * node + 3)));
    }
    for (let link = 0; 2 * link < ends.length; link++)
      for (let axis = 0; axis < 3; axis++)
        this.point[3 * (nodes + link) + axis] =
          (this.point[3 * ends[2 * link] + axis] + this.point[3 * ends[2 * link + 1] + axis]) / 2;
    this.radius = farthest || 1;
    this.size = 2 * ROOM * this.radius;
    [this.x, this.y, this.near] = [new Float64Array(count), new Float64Array(count), new Float64Array(count)];
    [this.middleX, this.middleY] = [this.x.subarray(nodes), this.y.subarray(nodes)];
  }

  turn(turn: Turn): void {
    const [ax, ay, az, bx, by, bz, cx, cy, cz] = matrixOf(turn);
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

/** The middle of the box that holds all. */
function centreOf(place: ArrayLike<number>): number[] {
  const least = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  const most = least.map((each) => -each);
  for (let at = 0; at < place.length; at++) {
    least[at % 3] = Math.min(least[at % 3], place[at]);
    most[at % 3] = Math.max(most[at % 3], place[at]);
  }
  return least.map((each, axis) => (place.length ? (each + most[axis]) / 2 : 0));
}
