import type { ErrorStatuses } from '../http/errors.ts';

/** The specification of 1.24 has no 401. */
export const refusedLogin: ErrorStatuses = { unauthorized: { below: '1.39', status: 500, from: 401 } };
