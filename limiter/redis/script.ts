import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The decision inside Redis: the same steps as `memory/decision.ts`, for one operation on one caller. Nothing can come between
 * them. The time is the server's unless a test gives one.
 *
 * A caller is one string value of 65 bytes: its version, when its fixed windows end, one other window, what all of these have
 * counted, a gateway's lease; further leases and windows follow (`wire.ts` reads it).
 *
 * Leases: how many requests each gateway has under way, and until when that is believed. A gateway that was killed
 * renews nothing, so its requests stop counting.
 *
 * The answer is the refusing limit (-1: none, 254: the value is none of ours), until when, the limits in shadow mode that would
 * have refused, the category's count and reset, and the time.
 */
export const SCRIPT = readFileSync(join(import.meta.dirname, 'script.lua'), 'utf8');
