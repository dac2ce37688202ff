import type { JSX } from 'preact';

import { ansiSpans, type Span } from './ansi.ts';
import { levelOf } from './levels.ts';
import type { LogLine } from './log-lines.ts';

type Props = { line: LogLine; showsTime: boolean; search: string };

/** One line of a log: its text is text, whatever it contains. */
export function LogRow({ line: { time, text, isError }, showsTime, search }: Props): JSX.Element {
  const level = levelOf(text);
  return (
    <div class={['log-line', isError ? 'stderr' : '', level === undefined ? '' : `level-${level}`].join(' ').trim()}>
      {showsTime && time !== '' && <time dateTime={time}>{clockText(time)}</time>}
      <bdi>{ansiSpans(text).map((span, index) => spanOf(span, index, search))}</bdi>
    </div>
  );
}

function spanOf({ text, classes, colour, background }: Span, key: number, search: string): JSX.Element {
  return (
    <span key={key} class={classes} style={{ ...(colour && { color: colour }), ...(background && { background }) }}>
      {search === '' ? text : marked(text, search)}
    </span>
  );
}

/** The text with the hits of the search marked. */
function marked(text: string, search: string): (string | JSX.Element)[] {
  const parts: (string | JSX.Element)[] = [];
  const lower = text.toLowerCase();
  let at = 0;
  for (let hit = lower.indexOf(search); hit !== -1; hit = lower.indexOf(search, at)) {
    parts.push(text.slice(at, hit), <mark key={hit}>{text.slice(hit, hit + search.length)}</mark>);
    at = hit + search.length;
  }
  parts.push(text.slice(at));
  return parts;
}

/** The time of the day on this machine, with milliseconds; with the date unless it is today. */
function clockText(time: string): string {
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return '';
  const date = at.toDateString() === new Date().toDateString() ? '' : `${at.toLocaleDateString('sv')} `;
  return `${date}${at.toLocaleTimeString('en-GB')}.${String(at.getMilliseconds()).padStart(3, '0')}`;
}
