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
  /** Goes on from two runs side by side to their difference, to one alone. */
  compare(): void;
  /** Exchanges the two. */
  swap(): void;
  search(): void;
  zoom(factor: number): void;
  /** Turns a picture in space; moves another one, and that one too where `moves`. */
  steer(x: number, y: number, moves: boolean): void;
  /** To the next link end by load, or back. */
  step(by: number): void;
  /** Chooses the link end that was gone to. */
  take(): void;
}

/** Some keys are of the pictures alone, which are on `canvases`. */
export function listenToKeys(canvases: HTMLElement[], act: KeyActions): void {
  const anywhere: Record<string, (moves: boolean) => void> = {
    Escape: act.clear,
    "0": act.fit,
    g: act.log,
    d: act.theme,
    u: act.used,
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
  const onPicture: Record<string, (moves: boolean) => void> = {
    ArrowLeft: (moves) => act.steer(PAN, 0, moves),
    ArrowRight: (moves) => act.steer(-PAN, 0, moves),
    ArrowUp: (moves) => act.steer(0, PAN, moves),
    ArrowDown: (moves) => act.steer(0, -PAN, moves),
    Enter: act.take,
  };
  window.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
    const target = event.target as Element;
    if (target.closest("dialog") || target.matches("select, input:not([type=checkbox])")) return;
    // In a report, keys are of the view only while it is in sight.
    const box = canvases[0].getBoundingClientRect();
    if (box.bottom < 0 || box.top > window.innerHeight) return;
    const action = anywhere[event.key] ?? (canvases.includes(target as HTMLElement) ? onPicture[event.key] : undefined);
    if (!action) return;
    event.preventDefault();
    action(event.shiftKey);
  });
}
