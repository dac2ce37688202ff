import { text } from 'node:stream/consumers';

import { logIn } from '@gantry/client/images.ts';

import { command } from '../command-line/command.ts';
import { EXIT, Exit, UsageError } from '../exit-codes.ts';
import { ask } from '../output/ask.ts';
import { visible } from '../output/escape.ts';
import { eraseLogin, keyOf, readLogin, storeLogin } from './docker-config.ts';

/** `gantry login`. */
export const login = command({
  words: '[SERVER]',
  count: [0, 1],
  flags: {
    username: { kind: 'text', short: 'u', value: 'NAME', help: 'The name at the registry' },
    password: {
      kind: 'text',
      short: 'p',
      value: 'PASSWORD',
      help: 'The password; others can see it in the list of processes',
    },
    'password-stdin': { kind: 'boolean', help: 'Take the password from stdin' },
  },
  about: "The login is kept in docker's own file, ~/.docker/config.json, or by the credential helper that it names.",
  examples: ['gantry login registry.example.com', 'gantry login -u alice --password-stdin localhost:5000 < password'],
  run: async ({ connection }, [server = 'docker.io'], flags) => {
    const given = await givenLogin(flags);
    const kept = given.username === undefined ? await readLogin(server) : undefined;
    const asked = kept ?? (await completed(given, server));
    const { Status, IdentityToken } = await logIn(connection, { ...asked, serveraddress: keyOf(server) });
    const isPlain = await storeLogin(server, { ...asked, ...(IdentityToken && { identitytoken: IdentityToken }) });
    if (isPlain)
      console.error(
        'The login is kept unencrypted in the configuration file of docker; a credential helper protects it.',
      );
    console.log(visible(Status));
  },
});

/** `gantry logout`. */
export const logout = command({
  words: '[SERVER]',
  count: [0, 1],
  flags: {},
  run: async (_context, [server = 'docker.io']) => {
    const wasKnown = await eraseLogin(server);
    console.log(wasKnown ? `Removing login credentials for ${server}` : `Not logged in to ${server}`);
  },
});

type Flags = { username: string | undefined; password: string | undefined; 'password-stdin': boolean };
type Given = { username?: string; password?: string };

async function givenLogin({ username, password, 'password-stdin': fromStdin }: Flags): Promise<Given> {
  if (fromStdin && password !== undefined)
    throw new UsageError('--password and --password-stdin are mutually exclusive');
  if (fromStdin && username === undefined) throw new UsageError('must provide --username with --password-stdin');
  const read = fromStdin ? (await text(process.stdin)).replace(/\r?\n$/, '') : password;
  return { ...(username !== undefined && { username }), ...(read !== undefined && { password: read }) };
}

/** Asks for what is missing; a password is not shown. */
async function completed({ username, password }: Given, server: string): Promise<Required<Given>> {
  if ((username === undefined || password === undefined) && !process.stdin.isTTY) {
    throw new Exit(EXIT.failed, 'Cannot perform an interactive login from a non TTY device');
  }
  const name = username ?? (await ask(`Username at ${server}: `));
  const secret = password ?? (await ask('Password: ', true));
  if (name === '' || secret === '') throw new Exit(EXIT.failed, 'a name and a password are required');
  return { username: name, password: secret };
}
