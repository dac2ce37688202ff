import type { JSX } from 'preact';

type State = Readonly<{ State: string; Health?: { Status: string } | undefined; ExitCode?: number | undefined }>;

/** The state as a coloured dot and a word: never the colour alone. */
export function StateMark({ State, Health, ExitCode }: State): JSX.Element {
  const health = Health !== undefined && Health.Status !== 'none' ? Health.Status : undefined;
  const hasFailed = State === 'dead' || (State === 'exited' && ExitCode !== undefined && ExitCode !== 0);
  const kind =
    health === 'unhealthy' || hasFailed
      ? 'bad'
      : State === 'running'
        ? health === 'starting'
          ? 'warn'
          : 'good'
        : State === 'restarting' || State === 'paused'
          ? 'warn'
          : 'off';
  const word = State === 'running' ? (health ?? 'running') : hasFailed ? `${State} (${ExitCode ?? ''})` : State;
  return (
    <span class={`state ${kind}`}>
      <span aria-hidden="true" class="dot" />
      {word}
    </span>
  );
}

/** The exit code in a text such as `Exited (137) 3 minutes ago`. */
export function exitCodeOf(status: string): number | undefined {
  const [, code] = /^Exited \((\d+)\)/.exec(status) ?? [];
  return code === undefined ? undefined : Number(code);
}
