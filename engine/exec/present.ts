import type { ExecInspect } from './schema.ts';
import type { Exec } from './store.ts';

/** An exec as an inspect shows it. */
export function presentExec(exec: Exec): ExecInspect {
  const [entrypoint = '', ...rest] = exec.command;
  const { state } = exec;
  return {
    ID: exec.id,
    Running: state.status === 'running' || state.status === 'starting',
    ExitCode: state.status === 'ended' ? state.exitCode : null,
    ProcessConfig: {
      tty: exec.tty,
      entrypoint,
      arguments: rest,
      privileged: exec.privileged,
      ...(exec.user !== '' && { user: exec.user }),
    },
    OpenStdin: exec.openStdin,
    OpenStderr: exec.openStderr,
    OpenStdout: exec.openStdout,
    CanRemove: false,
    ContainerID: exec.containerId,
    DetachKeys: exec.detachKeys,
    Pid: state.status === 'running' ? state.pid : 0,
  };
}
