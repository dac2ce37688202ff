import type { EventMessage } from '@gantry/client/system.ts';
import type { JSX } from 'preact';

import { countText } from '../parts/texts.ts';

const BARS = 48;
const DAY_SECONDS = 86_400;
const BAR_SECONDS = DAY_SECONDS / BARS;

type Props = {
  /** Newest first. */
  events: readonly EventMessage[];
  /** Called with the first second of the chosen bar. */
  choose: (time: number) => void;
};

/** The number of events in each half hour of the last day; a bar leads to its events. */
export function Timeline({ events, choose }: Props): JSX.Element | null {
  if (events.length === 0) return null;
  const end = (Math.floor(Date.now() / 1000 / BAR_SECONDS) + 1) * BAR_SECONDS;
  const counts = Array.from({ length: BARS }, () => 0);
  for (const { time } of events) {
    const bar = BARS - Math.ceil((end - time) / BAR_SECONDS);
    if (bar >= 0 && bar < BARS) counts[bar]! += 1;
  }
  const most = Math.max(...counts);
  return (
    <div class="timeline" role="group" aria-label="Events of each half hour">
      {counts.map((count, index) => {
        const start = end - (BARS - index) * BAR_SECONDS;
        const label = `${clockText(start)} to ${clockText(start + BAR_SECONDS)}: ${countText(count, 'event')}`;
        return (
          <button
            key={start}
            type="button"
            aria-label={label}
            title={label}
            disabled={count === 0}
            onClick={() => choose(start)}
          >
            <span style={{ height: `${Math.ceil((count / most) * 100)}%` }} />
          </button>
        );
      })}
    </div>
  );
}

function clockText(seconds: number): string {
  return new Date(seconds * 1000).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
}
