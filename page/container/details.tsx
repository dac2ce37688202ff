import type { Inspect } from '@gantry/client/containers.ts';
import type { Changes as ChangeList } from '@gantry/engine/containers/schema.ts';
import type { JSX } from 'preact';

import { call } from '../api/request.ts';
import { CopyButton } from '../parts/copy-button.tsx';
import { Facts } from '../parts/facts.tsx';
import { List } from '../parts/list.tsx';
import { useLoad } from '../parts/load.ts';
import { countText, timeText } from '../parts/texts.ts';

const KINDS = ['changed', 'added', 'deleted'];
const MAX_CHANGES = 500;

/** Environment, mounts, networks, health, labels and changed files. */
export function Details({ container }: { container: Inspect }): JSX.Element {
  const { Config, Mounts, NetworkSettings, State } = container;
  const checks = State.Health?.Log ?? [];
  return (
    <div class="scroller padded">
      <h2>
        Environment <CopyButton text={Config.Env.join('\n')} label="Copy the environment" />
      </h2>
      <Pairs pairs={Config.Env.map(splitVariable)} none="No variables" />
      <h2>Mounts</h2>
      <List
        head={['In the container', 'From', 'Type', 'Access']}
        rows={Mounts.map(({ Type, Name, Source, Destination, RW }) => [
          Destination,
          Name ?? Source,
          Type,
          RW ? 'read and write' : 'read only',
        ])}
        none="No mounts"
      />
      <h2>Networks</h2>
      <List
        head={['Network', 'Address', 'IPv6', 'Gateway', 'MAC']}
        rows={Object.entries(NetworkSettings.Networks).map(([name, one]) => [
          name,
          one.IPAddress,
          one.GlobalIPv6Address,
          one.Gateway,
          one.MacAddress,
        ])}
        none="No networks"
      />
      {State.Health !== undefined && (
        <>
          <h2>Health checks</h2>
          <List
            head={['Time', 'Exit code', 'Output']}
            rows={checks.toReversed().map(({ Start, ExitCode, Output }) => [timeText(Start), String(ExitCode), Output])}
            none="No check yet"
          />
        </>
      )}
      <h2>Labels</h2>
      <Pairs pairs={Object.entries(Config.Labels)} none="No labels" />
      <Changes container={container} />
    </div>
  );
}

/** Files that differ from those of the image. */
function Changes({ container: { Id, State } }: { container: Inspect }): JSX.Element {
  const { value, problem, reload } = useLoad(
    async () => (await call<ChangeList>('GET', `/containers/${Id}/changes`)) ?? [],
    `${Id} ${State.Status}`,
  );
  const changes = value?.slice(0, MAX_CHANGES) ?? [];
  const left = (value?.length ?? 0) - changes.length;
  return (
    <section aria-label="Changed files">
      <h2>
        Changed files{' '}
        <button type="button" onClick={reload}>
          Read again
        </button>
      </h2>
      {value === undefined ? (
        <p class="soft">{problem ?? 'Loading…'}</p>
      ) : (
        <List head={['Path', 'Change']} rows={changes.map(({ Path, Kind }) => [Path, KINDS[Kind]])} none="None" />
      )}
      {left > 0 && <p class="soft">{countText(left, 'more change')}.</p>}
    </section>
  );
}

function Pairs({ pairs, none }: { pairs: readonly (readonly [string, string])[]; none: string }): JSX.Element {
  return pairs.length === 0 ? <p class="soft">{none}</p> : <Facts facts={pairs} />;
}

function splitVariable(text: string): readonly [string, string] {
  const at = text.indexOf('=');
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}
