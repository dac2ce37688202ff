import type { TestEngine } from '@gantry/testing/test-engine.ts';

const REQUESTS = [
  'printf "INFO GET /cart \\033[32m200\\033[0m in 12 ms\\n"',
  'printf "ERROR GET /pay \\033[31m500\\033[0m in 9 ms: no connection to the bank\\nWARN the cart of 7 is old\\n"',
  'dd if=/dev/urandom of=/dev/null bs=1M count=1 2>/dev/null',
  'sleep 0.4',
].join('; ');
const FAILURE = 'echo "connecting to db:5432"; echo "FATAL: password authentication failed" >&2; exit 3';
const ROWS = 'dd if=/dev/zero of=/var/lib/data/rows bs=1M count=3 2>/dev/null; exec sleep 1000';

type Member = Readonly<{ script: string; config?: object; host?: object }>;
export type Scene = Readonly<{ web: string; worker: string }>;

/** The containers of a small shop, of which one has crashed, with their network and volume, for a look at each screen. */
export async function makeScene(engine: TestEngine): Promise<Scene> {
  await engine.post('/networks/create', { Name: 'shop_default' });
  const web = await runMember(engine, 'web', {
    script: `while :; do ${REQUESTS}; done`,
    config: { Healthcheck: { Test: ['CMD', 'true'], Interval: 2e9 } },
    host: { PortBindings: { '80/tcp': [{ HostPort: '8080' }] }, Memory: 64 << 20 },
  });
  await runMember(engine, 'db', { script: ROWS, host: { Binds: ['shop_data:/var/lib/data'] } });
  await runMember(engine, 'queue', { script: 'while :; do sleep 0.05; done' });
  const worker = await runMember(engine, 'worker', { script: FAILURE, config: { Env: ['LOG_LEVEL=info'] } });
  await engine.wait(worker);
  await engine.run(['sleep', '1000'], { StopTimeout: 1 }, 'cache');
  return { web, worker };
}

async function runMember(engine: TestEngine, service: string, { script, config, host }: Member): Promise<string> {
  const body = {
    Labels: { 'com.docker.compose.project': 'shop', 'com.docker.compose.service': service },
    StopTimeout: 1,
    HostConfig: { NetworkMode: 'shop_default', ...host },
    ...config,
  };
  return await engine.run(['sh', '-c', script], body, `shop-${service}-1`);
}
