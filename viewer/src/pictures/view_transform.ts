// SPDX-License-Identifier: Apache-2.0
// Zoom and pan: transforms from a picture's units to a canvas's CSS pixels.

/** Maps a point (pointX, pointY) to `pointX * scale + x` and `pointY * scale + y`. */
export interface ViewTransform {
  scale: number;
  x: number;
  y: number;
}

export interface PictureSize {
  width: number;
  height: number;
}

export interface Margin {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

/** Limits of the zoom, relative to the fitted picture. */
const SMALLEST_ZOOM = 0.2;
const LARGEST_ZOOM = 5000;

/** Return the transform that fits a picture into a canvas, centred. */
export function fitPicture(picture: PictureSize, canvas: PictureSize, margin: Margin): ViewTransform {
  const width = Math.max(canvas.width - margin.left - margin.right, 1);
  const height = Math.max(canvas.height - margin.top - margin.bottom, 1);
  const scale = Math.min(width / picture.width, height / picture.height);
  return {
    scale,
    x: margin.left + (width - scale * picture.width) / 2,
    y: margin.top + (height - scale * picture.height) / 2,
  };
}

/** Return the transform after a zoom about a point; the point keeps its position. */
export function zoomAbout(
  view: ViewTransform,
  fitted: ViewTransform,
  factor: number,
  [x, y]: [number, number],
): ViewTransform {
  const scale = fitted.scale * limitZoom((view.scale * factor) / fitted.scale);
  const applied = scale / view.scale;
  return { scale, x: x - (x - view.x) * applied, y: y - (y - view.y) * applied };
}

/** Return the view's centre and zoom for the page's URL; undefined for the fitted picture. */
export function locateView(view: ViewTransform, fitted: ViewTransform, canvas: PictureSize): number[] | undefined {
  const samePlace = Math.abs(view.x - fitted.x) < 0.5 && Math.abs(view.y - fitted.y) < 0.5;
  if (samePlace && Math.abs(view.scale / fitted.scale - 1) < 1e-3) return undefined;
  const centre = [(canvas.width / 2 - view.x) / view.scale, (canvas.height / 2 - view.y) / view.scale];
  return [...centre, view.scale / fitted.scale].map((each) => Number(each.toPrecision(9)));
}

/** Return the transform of a centre and zoom, as `locateView` returns them. */
export function viewAt(at: number[] | undefined, fitted: ViewTransform, canvas: PictureSize): ViewTransform {
  if (!at) return fitted;
  const scale = fitted.scale * limitZoom(at[2]);
  return { scale, x: canvas.width / 2 - at[0] * scale, y: canvas.height / 2 - at[1] * scale };
}

function limitZoom(zoom: number): number {
  return Math.min(Math.max(zoom, SMALLEST_ZOOM), LARGEST_ZOOM);
}
