import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type uPlot from 'uplot';

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
  const data = dataOf(readings, lines);
  const latest = useRef(data);
  latest.current = data;
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    let isGone = false;
    const sizes = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    const begin = async (): Promise<void> => {
      const { createPlot } = await import('./plot.ts');
      if (isGone) return;
      const colours = LINE_CLASSES.map((name) => colourOf(element, name));
      const look = { width: element.clientWidth, height: HEIGHT, colours, format };
      plot.current = createPlot(element, latest.current, look);
      sizes.observe(element);
    };
    void begin();
    return () => {
      isGone = true;
      sizes.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, []);
  useEffect(() => {
    plot.current?.setData(data, false);
    const end = readings.at(-1)?.at ?? 0;
    const start = Math.min(readings[0]?.at ?? 0, end - MIN_SPAN_SECONDS);
    plot.current?.setScale('x', { min: start, max: end });
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
