import { createHash } from 'node:crypto';

import type { ServiceSpec, TemplateRecord } from './records.ts';

/** The part of a service that makes its tasks old when it changes. Other constraints only move them. */
export function templateOf(service: string, { template, networks, endpoint }: ServiceSpec): TemplateRecord {
  const { constraints: _moved, ...rest } = template;
  const hash = createHash('sha256')
    .update(JSON.stringify([rest, networks, endpoint]))
    .digest('hex')
    .slice(0, 16);
  return { service, hash, template, networks, ...(endpoint === undefined ? {} : { endpoint }) };
}
