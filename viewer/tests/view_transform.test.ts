// SPDX-License-Identifier: Apache-2.0
// Zoom and pan, by hand.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fitPicture, locateView, viewAt, zoomAbout } from "../src/pictures/view_transform";

const MARGIN = { left: 60, right: 20, top: 10, bottom: 10 };
const CANVAS = { width: 1080, height: 420 };

test("a picture is fitted into the margins and centred", () => {
  // 1000 x 400 pixels are free, so the height limits the scale.
  assert.deepEqual(fitPicture({ width: 50, height: 40 }, CANVAS, MARGIN), { scale: 10, x: 60 + 250, y: 10 });
  assert.deepEqual(fitPicture({ width: 500, height: 40 }, CANVAS, MARGIN), { scale: 2, x: 60, y: 10 + 160 });
});

test("a canvas smaller than its margins has a picture nonetheless", () => {
  const { scale } = fitPicture({ width: 50, height: 40 }, { width: 70, height: 420 }, MARGIN);
  assert.equal(scale, 1 / 50);
});

test("a zoom keeps the point that it is about", () => {
  const fitted = { scale: 10, x: 310, y: 10 };
  const zoomed = zoomAbout(fitted, fitted, 3, [400, 100]);
  assert.equal(zoomed.scale, 30);
  // The point (9, 9) of the picture stays at pixel (400, 100).
  assert.deepEqual([zoomed.x + 9 * 30, zoomed.y + 9 * 30], [400, 100]);
});

test("a zoom has limits", () => {
  const fitted = { scale: 10, x: 0, y: 0 };
  assert.equal(zoomAbout(fitted, fitted, 1e-6, [0, 0]).scale, 2);
  assert.equal(zoomAbout(fitted, fitted, 1e9, [0, 0]).scale, 50_000);
  assert.equal(viewAt([0, 0, 1e9], fitted, CANVAS).scale, 50_000);
});

test("the address has centre and zoom, nothing for the fitted picture", () => {
  const fitted = { scale: 10, x: 310, y: 10 };
  assert.equal(locateView({ ...fitted, x: 310.3 }, fitted, CANVAS), undefined);
  // The centre of the canvas is (540, 210).
  assert.deepEqual(locateView({ scale: 20, x: 500, y: 200 }, fitted, CANVAS), [2, 0.5, 2]);
  assert.notEqual(locateView({ ...fitted, y: 12 }, fitted, CANVAS), undefined);
  assert.notEqual(locateView({ ...fitted, scale: 11 }, fitted, CANVAS), undefined);
  assert.deepEqual(locateView({ scale: 30, x: 500, y: 200 }, fitted, CANVAS), [1.33333333, 0.333333333, 3]);
  assert.deepEqual(viewAt([2, 0.5, 2], fitted, CANVAS), { scale: 20, x: 500, y: 200 });
  assert.deepEqual(viewAt(undefined, fitted, CANVAS), fitted);
});
