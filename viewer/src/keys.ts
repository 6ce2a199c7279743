// SPDX-License-Identifier: Apache-2.0
// Keys, as the help of the page lists them.

const ZOOM = 1.3;
const PAN = 60;

export interface KeyActions {
  fit(): void;
  clear(): void;
  log(): void;
  theme(): void;
  png(): void;
  svg(): void;
  keys(): void;
  used(): void;
  picture(): void;
  search(): void;
  zoom(factor: number): void;
  pan(x: number, y: number): void;
  /** To the next link end by load, or back. */
  step(by: number): void;
  /** Chooses the link end that was gone to. */
  take(): void;
}

export function listenToKeys(canvas: HTMLElement, act: KeyActions): void {
  const anywhere: Record<string, () => void> = {
    Escape: act.clear,
    "0": act.fit,
    g: act.log,
    d: act.theme,
    u: act.used,
    v: act.picture,
    s: act.png,
    S: act.svg,
    n: () => act.step(1),
    p: () => act.step(-1),
    "/": act.search,
    "?": act.keys,
    "+": () => act.zoom(ZOOM),
    "=": () => act.zoom(ZOOM),
    "-": () => act.zoom(1 / ZOOM),
  };
  const onPicture: Record<string, () => void> = {
    ArrowLeft: () => act.pan(PAN, 0),
    ArrowRight: () => act.pan(-PAN, 0),
    ArrowUp: () => act.pan(0, PAN),
    ArrowDown: () => act.pan(0, -PAN),
    Enter: act.take,
  };
  window.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
    const target = event.target as Element;
    if (target.closest("dialog") || target.matches("select, input:not([type=checkbox])")) return;
    // In a report, keys are of the view only while it is in sight.
    const box = canvas.getBoundingClientRect();
    if (box.bottom < 0 || box.top > window.innerHeight) return;
    const action = anywhere[event.key] ?? (target === canvas ? onPicture[event.key] : undefined);
    if (!action) return;
    event.preventDefault();
    action();
  });
}
