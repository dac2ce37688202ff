import type { Inspect } from '@gantry/client/containers.ts';
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';

import { attempt } from '../../parts/notices.tsx';
import { useStore } from '../../parts/store.ts';
import { useWindow } from '../../parts/virtual-rows.tsx';
import { plainText } from './ansi.ts';
import { LogBuffer, wholeLog } from './log-buffer.ts';
import { LogRow } from './log-row.tsx';

const ROW_HEIGHT = 18;

/** The log of a container: followed, searched, downloaded. */
export function LogScreen({ container: { Id, Name, Config, State } }: { container: Inspect }): JSX.Element {
  const tty = Config.Tty;
  const buffer = useMemo(() => new LogBuffer(Id, { tty }), [Id]);
  const { lines, dropped } = useStore(buffer.state);
  const scroller = useRef<HTMLDivElement>(null);
  const [search, setSearch] = useState('');
  const [showsTime, setShowsTime] = useState(true);
  const [isFollowing, setFollowing] = useState(true);
  useEffect(() => buffer.follow(), [buffer, State.StartedAt]);
  const wanted = search.toLowerCase();
  const shown = useMemo(
    () => (wanted === '' ? lines : lines.filter(({ text }) => plainText(text).toLowerCase().includes(wanted))),
    [lines, wanted],
  );
  const { first, end } = useWindow(scroller, ROW_HEIGHT, shown.length);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (isFollowing && element !== null) element.scrollTop = element.scrollHeight;
  }, [shown, isFollowing]);
  const noteScroll = (): void => {
    const { scrollTop = 0, clientHeight = 0, scrollHeight = 0 } = scroller.current ?? {};
    setFollowing(scrollHeight - scrollTop - clientHeight < ROW_HEIGHT);
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
        <Toggle word="Follow" isOn={isFollowing} set={setFollowing} />
        <Toggle word="Times" isOn={showsTime} set={setShowsTime} />
        <button type="button" onClick={() => void attempt(async () => save(await wholeLog(Id, { tty }), Name))}>
          Download
        </button>
        <span class="soft" role="status">
          {wanted === '' ? `${lines.length} lines` : `${shown.length} of ${lines.length} lines`}
          {dropped > 0 ? `, ${dropped} older ones dropped` : ''}
        </span>
      </div>
      <div class="scroller log" ref={scroller} onScroll={noteScroll} tabIndex={0} role="region" aria-label="Log">
        <div style={{ height: `${shown.length * ROW_HEIGHT}px`, paddingTop: `${first * ROW_HEIGHT}px` }}>
          {shown.slice(first, end).map((line, index) => (
            <LogRow key={first + index} line={line} showsTime={showsTime} search={wanted} />
          ))}
        </div>
        {lines.length === 0 && <p class="empty">No lines yet.</p>}
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

function save(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = `${name.replace(/^\//, '')}.log`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
