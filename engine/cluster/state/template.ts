import { createHash } from 'node:crypto';

import type { TemplateRecord } from './records.ts';
import type { ServiceSpec } from './service-spec.ts';

/** The part of a service that makes its tasks old when it changes. Another placement only moves them. */
export function templateOf(service: string, { template, networks, endpoint }: ServiceSpec): TemplateRecord {
  const { constraints: _constraints, placement: _placement, ...rest } = template;
  const hash = createHash('sha256')
    .update(JSON.stringify([rest, networks, endpoint]))
    .digest('hex')
    .slice(0, 16);
  return { service, hash, template, networks, ...(endpoint === undefined ? {} : { endpoint }) };
}
