import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const PARTS = ['input', 'windows', 'kinds', 'callers', 'operations', 'writing'];

/**
 * The decision inside Redis: the same steps as `memory/store.ts`, for a batch of requests in one call.
 *
 * A caller is one string value of 65 bytes: its version, when its fixed windows end, one other window, what all of these have
 * counted, a gateway's lease; further leases and windows follow. Nothing can come between the steps, and a caller's
 * value is read and written once for all of its operations. The time is the server's unless a test gives one.
 *
 * KEYS are callers. ARGV[1]: the rules; the kinds of decisions in this call; for each key how many operations, and for
 * each its kind, a number and an amount (`wire.ts`).
 *
 * A sliding window is as many of the further windows, with the same id, as it has steps (`window-form.ts`). The windows
 * that have a place of their own while they are fixed have ids that no category has.
 *
 * Leases: how many requests each gateway has under way, and until when that is believed. A gateway that was killed
 * renews nothing, so its requests stop counting.
 *
 * The answer is the time, then for each decision, for content and what is forgotten, which limit refuses (255: the value
 * is none of ours), which do in shadow, until when, and the category's count and reset. The highest bit of
 * the shadow is a mark: of an admission, that more than half of the concurrent requests are under way; of a refusal for
 * these, that some of them are other gateways'.
 *
 * Most calls for a caller change what is counted and nothing else: then only those bytes are written. Numeric
 * arguments of commands are passed as strings, since Redis formats numbers slowly.
 *
 * The parts in `script/` are one piece of Lua, in this order: as functions each would have to be given two dozen variables.
 */
export const SCRIPT = PARTS.map((name) =>
  readFileSync(join(import.meta.dirname, 'script', `${name}.lua`), 'utf8'),
).join('\n');
