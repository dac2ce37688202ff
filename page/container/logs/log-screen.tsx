import type { Inspect } from '@gantry/client/containers.ts';
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';

import { saveAs } from '../../files/transfers.ts';
import { attempt, notify } from '../../parts/notices.tsx';
import { useStore } from '../../parts/store.ts';
import { useWindow } from '../../parts/virtual-rows.tsx';
import { FIRST_LINES, LogBuffer, wholeLog } from './log-buffer.ts';
import { LogFilter, type ShownLevel } from './log-filter.ts';
import { LogRow } from './log-row.tsx';

const ROW_HEIGHT = 18;
const LEVELS: readonly (readonly [ShownLevel, string])[] = [
  ['all', 'All'],
  ['warning', 'Warnings'],
  ['error', 'Errors'],
];

/** The log of a container: followed, searched, downloaded. */
export function LogScreen({ container: { Id, Name, Config, State } }: { container: Inspect }): JSX.Element {
  const tty = Config.Tty;
  const [from, setFrom] = useState<Date | undefined>(undefined);
  const buffer = useMemo(() => new LogBuffer(Id, { tty, from }), [Id, from]);
  const filter = useMemo(() => new LogFilter(), [buffer]);
  const state = useStore(buffer.state);
  const scroller = useRef<HTMLDivElement>(null);
  const [search, setSearch] = useState('');
  const [level, setLevel] = useState<ShownLevel>('all');
  const [showsTime, setShowsTime] = useState(true);
  const [isFollowing, setFollowing] = useState(true);
  useEffect(() => buffer.follow(), [buffer, State.StartedAt]);
  const wanted = search.toLowerCase();
  const shown = useMemo(() => filter.apply(state, { search: wanted, level }), [filter, state, wanted, level]);
  const { lines, dropped } = state;
  const { first, end } = useWindow(scroller, ROW_HEIGHT, shown.length);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (isFollowing && element !== null) element.scrollTop = element.scrollHeight;
  }, [shown, isFollowing]);
  const noteScroll = (): void => {
    const { scrollTop = 0, clientHeight = 0, scrollHeight = 0 } = scroller.current ?? {};
    setFollowing(from === undefined && scrollHeight - scrollTop - clientHeight < ROW_HEIGHT);
  };
  const follow = (isOn: boolean): void => {
    setFrom(undefined);
    setFollowing(isOn);
  };
  const jump = (time: Date): void => {
    setFollowing(false);
    const isWhole = from === undefined && dropped === 0 && lines.length < FIRST_LINES;
    const oldest = lines[0] === undefined ? Infinity : Date.parse(lines[0].time);
    if (!isWhole && (from !== undefined || oldest > time.getTime())) return setFrom(time); // is not read yet
    const at = shown.findIndex((line) => Date.parse(line.time) >= time.getTime());
    if (at === -1) notify('No line is newer than this time.');
    scroller.current?.scrollTo({ top: (at === -1 ? shown.length : at) * ROW_HEIGHT });
  };
  return (
    <>
      <div class="bar">
        <input
          type="search"
          placeholder="Search  /"
          aria-label="Search the log"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        <div class="choice" role="group" aria-label="Levels">
          {LEVELS.map(([value, word]) => (
            <button key={value} type="button" aria-pressed={level === value} onClick={() => setLevel(value)}>
              {word}
            </button>
          ))}
        </div>
        <Toggle word="Follow" isOn={isFollowing} set={follow} />
        <Toggle word="Times" isOn={showsTime} set={setShowsTime} />
        <label>
          From{' '}
          <input
            type="datetime-local"
            step="1"
            aria-label="Jump to time"
            onChange={(event) => {
              const time = new Date(event.currentTarget.value);
              if (!Number.isNaN(time.getTime())) jump(time);
            }}
          />
        </label>
        <button
          type="button"
          onClick={() =>
            void attempt(async () => saveAs(await wholeLog(Id, { tty }), `${Name.replace(/^\//, '')}.log`))
          }
        >
          Download
        </button>
        <span class="soft" role="status">
          {shown === lines ? `${lines.length} lines` : `${shown.length} of ${lines.length} lines`}
          {dropped > 0 ? `, ${dropped} older ones dropped` : ''}
          {from === undefined ? '' : ` from ${from.toLocaleString()} on`}
        </span>
      </div>
      <div class="scroller log" ref={scroller} onScroll={noteScroll} tabIndex={0} role="region" aria-label="Log">
        <div style={{ height: `${shown.length * ROW_HEIGHT}px`, paddingTop: `${first * ROW_HEIGHT}px` }}>
          {shown.slice(first, end).map((line, index) => (
            <LogRow key={first + index} line={line} showsTime={showsTime} search={wanted} />
          ))}
        </div>
        {shown.length === 0 && <p class="empty">{lines.length === 0 ? 'No lines yet.' : 'No line fits the search.'}</p>}
      </div>
    </>
  );
}

function Toggle({ word, isOn, set }: { word: string; isOn: boolean; set: (isOn: boolean) => void }): JSX.Element {
  return (
    <button type="button" aria-pressed={isOn} onClick={() => set(!isOn)}>
      {word}
    </button>
  );
}
