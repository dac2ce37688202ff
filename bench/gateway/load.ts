import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { outputOf } from './processes.ts';

export const ROUNDS = 7;
export const SECONDS = 2;
export const CONNECTIONS = 32;
export const CALLERS = 1000;

/** Requests that are made before the first one is sent. */
const CALLER_SCRIPT = `
local requests, at = {}, 0
for n = 0, ${CALLERS - 1} do
  local headers = { Authorization = 'Bearer token-of-' .. n, Accept = 'application/vnd.platform+json' }
  requests[n] = function() return wrk.format('GET', '/repos/gantry/r' .. (n % 50), headers) end
end
init = function() for n = 0, ${CALLERS - 1} do requests[n] = requests[n]() end end
request = function()
  at = (at + 7) % ${CALLERS}
  return requests[at]
end
`;

/** Writes what `wrk` asks. Returns its path. */
export async function writeCallers(folder: string): Promise<string> {
  const script = join(folder, 'callers.lua');
  await writeFile(script, CALLER_SCRIPT);
  return script;
}

type Asked = Readonly<{ name: string; port: number; status: number }>;

/** Requests per second. Another status than the expected one in any answer is an error. */
export async function requestsPerSecond({ name, port, status }: Asked, script: string): Promise<number> {
  const args = ['-t1', `-c${CONNECTIONS}`, `-d${SECONDS}s`, '-s', script, `http://127.0.0.1:${port}`];
  const stdout = await outputOf('wrk', args);
  const perSecond = Number(/^Requests\/sec:\s+([\d.]+)/m.exec(stdout)?.[1]);
  const total = Number(/^\s+(\d+) requests in/m.exec(stdout)?.[1]);
  const others = Number(/^\s+Non-2xx or 3xx responses: (\d+)/m.exec(stdout)?.[1] ?? 0);
  if (!(perSecond > 0) || others !== (status === 200 ? 0 : total) || stdout.includes('Socket errors')) {
    throw new Error(`${name} gave an unexpected answer:\n${stdout}`);
  }
  return perSecond;
}
