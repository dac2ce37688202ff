import { dirname, join } from 'node:path';

/** The file in a container's folder from which its lines are delivered. */
export function bufferPath(folder: string): string {
  return join(folder, 'delivery', 'lines.log');
}

/** The file with what was delivered of the buffer at `logPath`; beside its folder, which is watched. */
export function checkpointPath(logPath: string): string {
  return join(dirname(dirname(logPath)), 'delivery.checkpoint');
}
