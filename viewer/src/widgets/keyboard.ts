// SPDX-License-Identifier: Apache-2.0
// Keyboard shortcuts, which the page's help lists.

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
  /** Fold nodes without traffic, or show all nodes. */
  fold(): void;
  picture(): void;
  /** Switch between two runs side by side, their difference, and a single run. */
  compare(): void;
  /** Exchange the two runs. */
  swap(): void;
  search(): void;
  zoom(factor: number): void;
  /** Pan the picture. A three-dimensional picture is rotated instead, unless `pans` is true. */
  steer(x: number, y: number, pans: boolean): void;
  /** Move the cursor by `by` places in the list of links, which is sorted by load. */
  step(by: number): void;
  /** Select the link direction at the cursor. */
  selectCursor(): void;
}

/** Listen for keys. Arrow keys and Enter act only while a picture (one of `canvases`) has the focus. */
export function listenToKeyboard(canvases: HTMLElement[], act: KeyActions): void {
  const anywhere: Record<string, (pans: boolean) => void> = {
    Escape: act.clear,
    "0": act.fit,
    g: act.log,
    d: act.theme,
    u: act.used,
    f: act.fold,
    v: act.picture,
    c: act.compare,
    x: act.swap,
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
  const onPicture: Record<string, (pans: boolean) => void> = {
    ArrowLeft: (pans) => act.steer(PAN, 0, pans),
    ArrowRight: (pans) => act.steer(-PAN, 0, pans),
    ArrowUp: (pans) => act.steer(0, PAN, pans),
    ArrowDown: (pans) => act.steer(0, -PAN, pans),
    Enter: act.selectCursor,
  };
  window.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
    const target = event.target as Element;
    if (target.closest("dialog") || target.matches("select, input:not([type=checkbox])")) return;
    // In a report, keys act on the view only while it is visible.
    const box = canvases[0].getBoundingClientRect();
    if (box.bottom < 0 || box.top > window.innerHeight) return;
    const action = anywhere[event.key] ?? (canvases.includes(target as HTMLElement) ? onPicture[event.key] : undefined);
    if (!action) return;
    event.preventDefault();
    action(event.shiftKey);
  });
}
