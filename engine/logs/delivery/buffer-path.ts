import { dirname, join } from 'node:path';

/** The file in a container's folder from which its lines are delivered. */
export function bufferPath(folder: string): string {
  return join(folder, 'delivery', 'lines.log');
}

/** The checkpoint file of the buffer at `logPath`; it is outside of the buffer's folder, which is watched. */
export function checkpointPath(logPath: string): string {
  return join(dirname(dirname(logPath)), 'delivery.checkpoint');
}
