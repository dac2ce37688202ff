import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type uPlot from 'uplot';

import { isDark } from '../parts/colour-scheme.ts';
import { useStore } from '../parts/store.ts';
import type { Reading } from './usage-history.ts';

export type Line = Readonly<{ word: string; field: Exclude<keyof Reading, 'at'> }>;
type Props = {
  title: string;
  lines: readonly Line[];
  format: (value: number) => string;
  readings: readonly Reading[];
};

const HEIGHT = 96;
/** A young chart is not stretched over its whole width. */
const MIN_SPAN_SECONDS = 60;
const LINE_CLASSES = ['line-1', 'line-2'];

/** Lines over time, with their latest values as text. */
export function Chart({ title, lines, format, readings }: Props): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const latest = useRef(readings);
  latest.current = readings;
  const scheme = useStore(isDark);
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    let isGone = false;
    const sizes = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    const begin = async (): Promise<void> => {
      const { createPlot } = await import('./plot.ts');
      if (isGone) return;
      const colours = LINE_CLASSES.map((name) => colourOf(element, name));
      const grid = colourOf(element, 'grid-line');
      const look = { width: element.clientWidth, height: HEIGHT, colours, grid, format };
      plot.current = createPlot(element, dataOf([], lines), look);
      draw(plot.current, latest.current, lines);
      sizes.observe(element);
    };
    void begin();
    return () => {
      isGone = true;
      sizes.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [scheme]);
  useEffect(() => {
    if (plot.current !== undefined) draw(plot.current, readings, lines);
  }, [readings]);
  const last = readings.at(-1);
  return (
    <figure class="chart">
      <figcaption>
        <strong>{title}</strong>{' '}
        {last === undefined ? (
          <span class="soft">…</span>
        ) : (
          lines.map(({ word, field }, index) => (
            <span key={field} class={`value line-${index + 1}`}>
              {format(last[field])} <span class="soft">{word}</span>
            </span>
          ))
        )}
      </figcaption>
      <div ref={place} aria-hidden="true" />
    </figure>
  );
}

function draw(plot: uPlot, readings: readonly Reading[], lines: readonly Line[]): void {
  plot.setData(dataOf(readings, lines), false);
  const end = readings.at(-1)?.at ?? 0;
  plot.setScale('x', { min: Math.min(readings[0]?.at ?? 0, end - MIN_SPAN_SECONDS), max: end });
}

function dataOf(readings: readonly Reading[], lines: readonly Line[]): uPlot.AlignedData {
  return [readings.map(({ at }) => at), ...lines.map(({ field }) => readings.map((one) => one[field]))];
}

/** The colour of a class as a canvas understands it. */
function colourOf(element: HTMLElement, name: string): string {
  const probe = element.appendChild(document.createElement('span'));
  probe.className = name;
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
