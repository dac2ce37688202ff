import type { ComponentChildren, JSX, RefObject } from 'preact';
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';

import { visibleWindow, type Window } from './visible-window.ts';

/** Follows the scrolling of an element. */
export function useWindow(scroller: RefObject<HTMLElement | null>, rowHeight: number, count: number): Window {
  const [place, setPlace] = useState({ top: 0, height: 800 });
  const measure = (): void => {
    const element = scroller.current;
    if (element === null) return;
    const { scrollTop: top, clientHeight: height } = element;
    setPlace((before) => (before.top === top && before.height === height ? before : { top, height }));
  };
  useLayoutEffect(measure, [count]);
  useEffect(() => {
    const element = scroller.current;
    if (element === null) return undefined;
    const sizes = new ResizeObserver(measure);
    sizes.observe(element);
    element.addEventListener('scroll', measure, { passive: true });
    return () => {
      sizes.disconnect();
      element.removeEventListener('scroll', measure);
    };
  }, []);
  return visibleWindow(place.top, place.height, rowHeight, count);
}

type Props<Row> = {
  scroller: RefObject<HTMLElement | null>;
  rows: readonly Row[];
  rowHeight: number;
  children: (row: Row, index: number) => ComponentChildren;
};

/** The body of a table of which only the rows in view exist. */
export function VirtualRows<Row>({ scroller, rows, rowHeight, children }: Props<Row>): JSX.Element {
  const { first, end } = useWindow(scroller, rowHeight, rows.length);
  return (
    <tbody>
      <Space height={first * rowHeight} />
      {rows.slice(first, end).map((row, index) => children(row, first + index))}
      <Space height={(rows.length - end) * rowHeight} />
    </tbody>
  );
}

function Space({ height }: { height: number }): JSX.Element | null {
  if (height <= 0) return null;
  return (
    <tr aria-hidden="true" class="space">
      <td style={{ height: `${height}px` }} />
    </tr>
  );
}
