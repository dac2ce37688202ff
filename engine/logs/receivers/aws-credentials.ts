import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

import { Type, type Static } from 'typebox';

import type { Clock } from '../../lib/clock.ts';
import { hasCode } from '../../lib/errors.ts';
import { lazyCheck } from '../../lib/lazy-check.ts';
import { parseAnswer, type HttpAnswer, type HttpReceiver } from './http-receiver.ts';

type Credentials = Readonly<{ accessKeyId: string; secretAccessKey: string; sessionToken?: string }>;
const OptionalText = Type.Optional(Type.Union([Type.String(), Type.Null()]));
const Lent = Type.Object({
  AccessKeyId: Type.String(),
  SecretAccessKey: Type.String(),
  Token: OptionalText,
  Expiration: OptionalText,
});
type Lent = Static<typeof Lent>;
const lentCheck = lazyCheck(Lent);

/** The endpoints of Amazon's tasks and machines. */
const TASK = 'http://169.254.170.2';
const MACHINE = 'http://169.254.169.254/latest';
/** Temporary credentials are renewed this long before their end. */
const MARGIN_MS = 5 * 60_000;

/**
 * Without a key in the daemon's own settings, temporary ones are fetched: from the endpoint of the option, of the task,
 * or of the machine.
 */
export class AwsCredentials {
  readonly #http: HttpReceiver;
  readonly #clock: Clock;
  readonly #endpoint: string | undefined;
  #lent: Credentials | undefined;
  #untilMs = 0;

  /** `endpoint`: the path that the log option names. */
  constructor(http: HttpReceiver, clock: Clock, endpoint: string | undefined) {
    this.#http = http;
    this.#clock = clock;
    this.#endpoint = endpoint;
  }

  async current(): Promise<Credentials> {
    const own = this.#endpoint === undefined ? (fromEnvironment() ?? fromFile()) : undefined;
    if (own !== undefined) return own;
    const nowMs = this.#clock.now().epochMilliseconds;
    if (this.#lent !== undefined && nowMs < this.#untilMs) return this.#lent;
    const { AccessKeyId, SecretAccessKey, Token, Expiration } = await this.#borrow();
    this.#lent = { accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey, ...(Token && { sessionToken: Token }) };
    this.#untilMs =
      Expiration === undefined || Expiration === null ? nowMs + MARGIN_MS : Date.parse(Expiration) - MARGIN_MS;
    return this.#lent;
  }

  async #borrow(): Promise<Lent> {
    const path = this.#endpoint ?? process.env['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI'];
    if (path !== undefined) return await lentBy(this.#http, `${TASK}${path}`);
    const headers = await machineToken(this.#http);
    const roles = `${MACHINE}/meta-data/iam/security-credentials/`;
    const [role = ''] = (await ask(this.#http, roles, headers)).text.split('\n');
    return await lentBy(this.#http, `${roles}${role}`, headers);
  }
}

/** Returns the region of the option, else of the daemon's environment, else of the machine. */
export async function regionOf(http: HttpReceiver, option = ''): Promise<string> {
  const named = option || process.env['AWS_REGION'] || '';
  if (named !== '') return named;
  try {
    return (await ask(http, `${MACHINE}/meta-data/placement/region`, await machineToken(http))).text;
  } catch (error) {
    throw new Error('Cannot determine region for awslogs driver', { cause: error });
  }
}

async function machineToken(http: HttpReceiver): Promise<Record<string, string>> {
  const headers = { 'x-aws-ec2-metadata-token-ttl-seconds': '21600' };
  const { status, text: token } = await http.ask({ method: 'PUT', url: `${MACHINE}/api/token`, headers });
  if (status !== 200) throw new Error(`the machine's metadata service answers ${status}`);
  return { 'x-aws-ec2-metadata-token': token };
}

async function lentBy(http: HttpReceiver, url: string, headers: Record<string, string> = {}): Promise<Lent> {
  const lent = parseAnswer(url, await ask(http, url, headers));
  if (lentCheck.Check(lent)) return lent;
  throw new Error(`${url} answers without credentials`);
}

async function ask(http: HttpReceiver, url: string, headers: Record<string, string>): Promise<HttpAnswer> {
  const answer = await http.ask({ method: 'GET', url, headers });
  if (answer.status !== 200) throw new Error(`${url} answers ${answer.status}`);
  return answer;
}

function fromEnvironment(): Credentials | undefined {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey, AWS_SESSION_TOKEN } = process.env;
  if (!accessKeyId || !secretAccessKey) return undefined;
  return { accessKeyId, secretAccessKey, ...(AWS_SESSION_TOKEN && { sessionToken: AWS_SESSION_TOKEN }) };
}

/** The section of the profile in `~/.aws/credentials`. */
function fromFile(): Credentials | undefined {
  const { AWS_SHARED_CREDENTIALS_FILE, AWS_PROFILE = 'default' } = process.env;
  const lines = linesOf(AWS_SHARED_CREDENTIALS_FILE ?? join(homedir(), '.aws', 'credentials'));
  const start = lines.indexOf(`[${AWS_PROFILE}]`);
  if (start === -1) return undefined;
  const rest = lines.slice(start + 1);
  const end = rest.findIndex((line) => line.startsWith('['));
  const section = new Map(
    rest.slice(0, end === -1 ? undefined : end).map((line) => {
      const [key = '', ...value] = line.split('=');
      return [key.trim(), value.join('=').trim()] as const;
    }),
  );
  const [accessKeyId, secretAccessKey] = [section.get('aws_access_key_id'), section.get('aws_secret_access_key')];
  if (!accessKeyId || !secretAccessKey) return undefined;
  const sessionToken = section.get('aws_session_token');
  return { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) };
}

function linesOf(path: string): string[] {
  try {
    return readFileSync(path, 'utf8')
      .split('\n')
      .map((line) => line.trim());
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return [];
    throw error;
  }
}
