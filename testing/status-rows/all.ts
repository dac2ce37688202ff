import type { EndpointName } from '@gantry/engine/http/description/endpoints.ts';

import { clusterRows } from './cluster.ts';
import { containerFileRows } from './container-files.ts';
import { containerRunRows } from './container-runs.ts';
import { containerStreamRows } from './container-streams.ts';
import { containerRows } from './containers.ts';
import { execRows } from './exec.ts';
import { imageRows } from './images.ts';
import { networkRows } from './networks.ts';
import { newerRows } from './newer.ts';
import { pluginRows } from './plugins.ts';
import type { StatusRow } from './row.ts';
import { systemRows } from './system.ts';
import { volumeRows } from './volumes.ts';

/** Statuses of every endpoint as the specification lists them, and requests that bring them about. */
export const STATUS_ROWS: Readonly<Record<EndpointName, StatusRow>> = {
  ...containerRows,
  ...containerStreamRows,
  ...containerFileRows,
  ...containerRunRows,
  ...execRows,
  ...imageRows,
  ...volumeRows,
  ...networkRows,
  ...pluginRows,
  ...clusterRows,
  ...systemRows,
  ...newerRows,
};
