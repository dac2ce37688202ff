import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';

import { useStore } from '../parts/store.ts';
import { percentText, sizeText } from '../parts/texts.ts';
import { Chart, type Line } from './chart.tsx';
import { followHistory, historyOf } from './usage-history.ts';

const rateText = (value: number): string => `${sizeText(value)}/s`;
const CHARTS: readonly Readonly<{ title: string; lines: readonly Line[]; format: (value: number) => string }>[] = [
  { title: 'CPU', lines: [{ word: 'of one CPU', field: 'cpu' }], format: percentText },
  { title: 'Memory', lines: [{ word: 'used', field: 'memory' }], format: sizeText },
  {
    title: 'Network',
    lines: [
      { word: 'received', field: 'received' },
      { word: 'sent', field: 'sent' },
    ],
    format: rateText,
  },
  {
    title: 'Disk',
    lines: [
      { word: 'read', field: 'read' },
      { word: 'written', field: 'written' },
    ],
    format: rateText,
  },
  { title: 'Processes', lines: [{ word: 'now', field: 'pids' }], format: (value) => String(Math.round(value)) },
];

/** The use of the machine, since this page watches the container. */
export function Charts({ id }: { id: string }): JSX.Element {
  const readings = useStore(historyOf(id));
  useEffect(() => followHistory(id), [id]);
  return (
    <div class="charts">
      {CHARTS.map((chart) => (
        <Chart key={chart.title} {...chart} readings={readings} />
      ))}
    </div>
  );
}
