import type { Inspect } from '@gantry/client/containers.ts';
import type { JSX } from 'preact';

import { CopyButton } from '../parts/copy-button.tsx';
import { Facts } from '../parts/facts.tsx';
import { List } from '../parts/list.tsx';
import { timeText } from '../parts/texts.ts';

/** Environment, mounts, networks, health and labels. */
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
    </div>
  );
}

function Pairs({ pairs, none }: { pairs: readonly (readonly [string, string])[]; none: string }): JSX.Element {
  return pairs.length === 0 ? <p class="soft">{none}</p> : <Facts facts={pairs} />;
}

function splitVariable(text: string): readonly [string, string] {
  const at = text.indexOf('=');
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}
