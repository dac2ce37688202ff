import { BUCKET_SECONDS, type Durations } from '../../lib/measures.ts';

type Labels = Readonly<Record<string, string>>;
export type Sample = readonly [labels: Labels, value: number];

/** A metric in the text format of Prometheus, version 0.0.4. */
export function metricText(name: string, type: 'counter' | 'gauge', help: string, samples: readonly Sample[]): string {
  const lines = samples.map(([labels, value]) => `${name}${labelText(labels)} ${value}\n`);
  return `${headText(name, type, help)}${lines.join('')}`;
}

/** A histogram with one label, of which each value has buckets of its own. */
export function histogramText(
  name: string,
  help: string,
  label: string,
  durations: ReadonlyMap<string, Readonly<Durations>>,
): string {
  const lines = [...durations].map(([value, one]) => durationLines(name, { [label]: value }, one));
  return `${headText(name, 'histogram', help)}${lines.join('')}`;
}

function durationLines(name: string, labels: Labels, { counts, sumSeconds }: Readonly<Durations>): string {
  let total = 0;
  const buckets = counts.map((count, index) => {
    total += count;
    return `${name}_bucket${labelText({ ...labels, le: String(BUCKET_SECONDS[index] ?? '+Inf') })} ${total}\n`;
  });
  return `${buckets.join('')}${name}_sum${labelText(labels)} ${sumSeconds}\n${name}_count${labelText(labels)} ${total}\n`;
}

function headText(name: string, type: string, help: string): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function escapeLabel(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
