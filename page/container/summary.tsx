import type { Inspect } from '@gantry/client/containers.ts';
import type { ImageInspect } from '@gantry/engine/images/schema.ts';
import type { JSX } from 'preact';

import { call } from '../api/request.ts';
import { hrefOf } from '../app/route.ts';
import { CopyButton } from '../parts/copy-button.tsx';
import { Facts, type Fact } from '../parts/facts.tsx';
import { useLoad } from '../parts/load.ts';
import { shortId, timeText } from '../parts/texts.ts';
import { Charts } from './charts.tsx';
import { exitReason } from './exit-reason.ts';
import { LastLines } from './logs/last-lines.tsx';
import { runCommand } from './run-command.ts';

/** The state and its reason, the use of the machine, and the command that makes the container again. */
export function Summary({ container }: { container: Inspect }): JSX.Element {
  const { Id, State, HostConfig, RestartCount, Image } = container;
  const isAlive = State.Running || State.Paused;
  const { value: image, problem } = useLoad(
    async () => await call<ImageInspect>('GET', `/images/${Image}/json`),
    Image,
  );
  const command = image === undefined ? '' : runCommand(container, image.Config);
  return (
    <div class="scroller padded">
      <p class={isAlive || State.ExitCode === 0 ? 'reason' : 'reason bad'}>
        <bdi>{exitReason(State, { memoryBytes: HostConfig.Memory, restartCount: RestartCount })}</bdi>
      </p>
      {isAlive ? <Charts id={Id} /> : <LastLines container={container} />}
      <Facts facts={factsOf(container)} />
      <h2>Make it again</h2>
      {image === undefined ? (
        <p class="soft">{problem === undefined ? 'Loading…' : 'Its image is gone, so its own settings are unknown.'}</p>
      ) : (
        <div class="command">
          <code>{command}</code>
          <CopyButton text={command} label="Copy the command" />
        </div>
      )}
    </div>
  );
}

function factsOf({ Id, Created, State, Config, Image, HostConfig, Path, Args }: Inspect): Fact[] {
  const restart = HostConfig.RestartPolicy.Name;
  return [
    ['Id', shortId(Id)],
    ['Image', <a href={hrefOf('images', Image)}>{Config.Image}</a>],
    ['Command', [Path, ...Args].join(' ')],
    ['Created', timeText(Created)],
    ['Started', timeText(State.StartedAt)],
    ['Ended', State.Running ? undefined : timeText(State.FinishedAt)],
    ['Process', State.Pid === 0 ? undefined : String(State.Pid)],
    ['Restarts', restart === '' || restart === 'no' ? 'never' : restart],
  ];
}
