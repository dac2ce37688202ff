import type { Inspect } from '@gantry/client/containers.ts';
import type { JSX } from 'preact';

import { call } from '../api/request.ts';
import { hrefOf } from '../app/route.ts';
import { exitCodeOf, StateMark } from '../containers/state-mark.tsx';
import { FilesScreen } from '../files/files-screen.tsx';
import { useLoad } from '../parts/load.ts';
import { ContainerActions } from './container-actions.tsx';
import { Details } from './details.tsx';
import { LogScreen } from './logs/log-screen.tsx';
import { Summary } from './summary.tsx';
import { TerminalScreen } from './terminal/terminal-screen.tsx';

const PARTS = [
  ['summary', 'Summary'],
  ['logs', 'Logs'],
  ['terminal', 'Terminal'],
  ['files', 'Files'],
  ['details', 'Details'],
] as const;

/** One container. */
export function ContainerScreen({ id, part }: { id: string; part: string }): JSX.Element {
  const { value: container, problem } = useLoad(
    async () => await call<Inspect>('GET', `/containers/${encodeURIComponent(id)}/json`),
    id,
    (type, changed, action) => type === 'container' && changed === id && !action.startsWith('exec_'),
  );
  if (container === undefined) return <p class="empty">{problem ?? 'Loading…'}</p>;
  const { State, Name, Config } = container;
  return (
    <section class="screen">
      <div class="bar">
        <h1 class="title">
          <a href={hrefOf('containers')} aria-label="All containers">
            ‹
          </a>{' '}
          <bdi>{Name.replace(/^\//, '')}</bdi>
        </h1>
        <StateMark State={State.Status} Health={State.Health} ExitCode={exitCode(container)} />
        <bdi class="soft wide">{Config.Image}</bdi>
        <ContainerActions container={container} />
      </div>
      {problem !== undefined && <p class="banner">{problem}</p>}
      <nav class="tabs" aria-label="Parts of the container">
        {PARTS.map(([name, word]) => (
          <a key={name} href={hrefOf('containers', id, name)} aria-current={name === part ? 'page' : undefined}>
            {word}
          </a>
        ))}
      </nav>
      <Part container={container} part={part} />
    </section>
  );
}

function Part({ container, part }: { container: Inspect; part: string }): JSX.Element {
  switch (part) {
    case 'logs':
      return <LogScreen key={container.Id} container={container} />;
    case 'terminal':
      return <TerminalScreen key={container.Id} container={container} />;
    case 'files':
      return <FilesScreen key={container.Id} owner={`/containers/${container.Id}`} takesUploads />;
    case 'details':
      return <Details container={container} />;
    default:
      return <Summary container={container} />;
  }
}

function exitCode({ State }: Inspect): number | undefined {
  return State.Status === 'exited' ? exitCodeOf(`Exited (${State.ExitCode})`) : undefined;
}
