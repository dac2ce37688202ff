const ROWS_BEYOND = 10;

export type Window = Readonly<{ first: number; end: number }>;

/** The rows to draw of a list with rows of one height: those in view, and some beyond. */
export function visibleWindow(top: number, height: number, rowHeight: number, count: number): Window {
  const first = Math.max(0, Math.min(count, Math.floor(top / rowHeight) - ROWS_BEYOND));
  return { first, end: Math.min(count, Math.ceil((top + height) / rowHeight) + ROWS_BEYOND) };
}
