import type { ErrorStatuses } from '../http/errors.ts';
import type { Steps } from '../http/versions/steps.ts';
import type { CreateBody } from './schema.ts';

/** Newest first; each is for requests that are older. */
export const createSteps: Steps<CreateBody> = [{ below: '1.25', request: clientRemoves }];

/** The specification of 1.24 has no 409 for a container in the wrong state. */
export const wrongState: ErrorStatuses = { conflict: { below: '1.25', status: 500 } };

/** Older clients remove the container themselves, whatever the body says. */
function clientRemoves({ HostConfig, ...body }: CreateBody): CreateBody {
  return HostConfig === undefined ? body : { ...body, HostConfig: { ...HostConfig, AutoRemove: false } };
}
