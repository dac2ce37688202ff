/** `./gantry demo gateway`: a small code host, the gateway in front of it, and Octokit that runs into its limits. */
import { CodeHost } from '@gantry/gateway/clients/code-host.ts';
import { sha256, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { Octokit } from 'octokit';

import { play, printTimes, say, step } from './steps.ts';

const TOKEN = 'a-token-of-ada';

/** A slow machine needs longer to show who is limited. */
const SECONDS = Number(process.env.GANTRY_DEMO_SECONDS ?? 4);

const settings = `
limits: { user: 5 }                                              # the specification has 5000
categories: { core: { windowSeconds: ${SECONDS} } }                       # and an hour
secondary: { graphqlPoints: { limit: 1 }, windowSeconds: ${SECONDS / 2} }     # and 2000 in a minute
identities:
  users: { '42': {} }
  tokens: [{ user: '42', sha256: ${sha256(TOKEN).slice(0, 8)}… }]`;

const refused = Promise.withResolvers<void>();

await play(main);

async function main(): Promise<void> {
  await using host = await CodeHost.start();
  await using gateway = await step(
    'start a small code host, and the gateway in front of it',
    async () => await startGateway(host),
  );
  say(`code host ${host.url}, gateway ${gateway.url}, with these settings:`);
  say(settings.trim().replaceAll('\n', '\n   '));

  const octokit = new Octokit({
    auth: TOKEN,
    baseUrl: gateway.url,
    request: { fetch: shownFetch },
    log: { debug: () => undefined, info: octokitSays, warn: octokitSays, error: octokitSays },
  });

  await step('Octokit uses up the quota of its user', async () => {
    for (let n = 0; n < 5; n += 1) await octokit.rest.users.getAuthenticated();
  });

  await step('the sixth request: refused, Octokit waits for the reset, and is admitted', async () => {
    const sixth = octokit.rest.users.getAuthenticated();
    await Promise.race([refused.promise, sixth]);
    await show(gateway, 'explain');
    await show(gateway, 'explain', 'user:42');
    const { data } = await sixth;
    say(`Octokit has its answer: ${data.login}`);
  });

  await step('a secondary limit: the second query of GraphQL comes too soon', async () => {
    for (let n = 0; n < 2; n += 1) {
      const { viewer } = await octokit.graphql<{ viewer: { login: string } }>('{ viewer { login } }');
      say(`Octokit has its answer: ${viewer.login}`);
    }
  });

  await step('what the gateway has counted', async () => {
    const metrics = await gateway.metrics();
    for (const [name, value] of metrics) {
      if (value > 0 && /_(responses|requests_admitted|requests_refused)_total/.test(name)) say(`${name} ${value}`);
    }
    say(`the code host has seen ${host.seen.length} requests: none of the refused ones`);
  });

  printTimes();
  console.log(`
What to try next:
  ./gantry gateway --upstream http://127.0.0.1:3000      in front of a server of yours, with the specification's limits
  curl -i http://127.0.0.1:8080/rate_limit               what is left
  ./gantry gateway explain                               who is limited now, by what, until when
  docs/gateway.md                                        users and tokens, other limits, SQLite and Redis, metrics`);
}

async function startGateway(host: CodeHost): Promise<TestGateway> {
  const written = settings.replace(/sha256: \w+…/, `sha256: ${sha256(TOKEN)}`);
  return await TestGateway.start(
    `listen: 127.0.0.1:0\nupstream: ${host.url}\nadmin: { socket: '{folder}/admin.sock' }${written}`,
  );
}

/** Shows every answer as it came over the wire, before Octokit makes something of it. */
async function shownFetch(url: string, options: RequestInit): Promise<Response> {
  const response = await fetch(url, options);
  const { status, headers } = response;
  const header = (name: string): string => headers.get(name) ?? '-';
  say(
    `${options.method} ${new URL(url).pathname} → ${status}  ${header('x-ratelimit-resource')}:` +
      ` used ${header('x-ratelimit-used')} of ${header('x-ratelimit-limit')},` +
      ` remaining ${header('x-ratelimit-remaining')}, reset ${header('x-ratelimit-reset')},` +
      ` retry-after ${header('retry-after')}`,
  );
  if (status >= 400) {
    say(await response.clone().text());
    refused.resolve();
  }
  return response;
}

function octokitSays(line: string): void {
  say(`Octokit says: ${line}`);
}

async function show(gateway: TestGateway, ...command: string[]): Promise<void> {
  const { output } = await gateway.cli(...command);
  say(`$ gantry gateway ${command.join(' ')}`);
  for (const line of output.trimEnd().split('\n')) say(`  ${line}`);
}
