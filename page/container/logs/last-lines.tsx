import type { Inspect } from '@gantry/client/containers.ts';
import type { JSX } from 'preact';

import { open } from '../../api/request.ts';
import { bytesOf } from '../../api/streams.ts';
import { hrefOf } from '../../app/route.ts';
import { useLoad } from '../../parts/load.ts';
import { LogReader, type LogLine } from './log-lines.ts';
import { LogRow } from './log-row.tsx';

const LINES = 15;

/** The last lines of a container that has ended: they often tell why. */
export function LastLines({ container: { Id, Config, State } }: { container: Inspect }): JSX.Element | null {
  const { value: lines, problem } = useLoad(async () => await lastLines(Id, Config.Tty), `${Id} ${State.FinishedAt}`);
  if (problem !== undefined) return <p class="soft">{problem}</p>;
  if (lines === undefined || lines.length === 0) return null;
  return (
    <>
      <h2>Last lines</h2>
      <div class="log short" tabIndex={0} role="region" aria-label="Last lines">
        {lines.map((line, index) => (
          <LogRow key={index} line={line} showsTime search="" />
        ))}
      </div>
      <p>
        <a href={hrefOf('containers', Id, 'logs')}>The whole log</a>
      </p>
    </>
  );
}

async function lastLines(id: string, tty: boolean): Promise<LogLine[]> {
  const query = { stdout: true, stderr: true, timestamps: true, tail: String(LINES) };
  const reader = new LogReader({ isFramed: !tty });
  const lines: LogLine[] = [];
  for await (const piece of bytesOf(await open('GET', `/containers/${id}/logs`, { query }))) {
    for (const line of reader.read(piece)) lines.push(line);
  }
  return [...lines, ...reader.end()];
}
