import type { Clock } from '../../lib/clock.ts';
import { settlesWithin } from '../../lib/clock.ts';
import { retry } from '../../lib/concurrency/retry.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import { messageOf } from '../../lib/failure-message.ts';
import { newRequest } from '../ca/certificates.ts';
import { firstCertificate } from '../ca/rotation.ts';
import { parseToken, rootDigest, type JoinToken } from '../ca/token.ts';
import { findEtcd } from '../etcd/process.ts';
import { NotReached, WireClient } from '../wire/client.ts';
import { CertificateAnswer, RootAnswer } from '../wire/schemas.ts';
import { addressText, remoteAddress, type Address } from './addresses.ts';
import { askLeader } from './ask-leader.ts';
import { Member, type MemberNeeds } from './member.ts';

type Request = Readonly<{
  listen: Address;
  advertise: Address;
  dataPath?: string;
  remotes: readonly string[];
  token: string;
}>;

/** As long as dockerd waits for a node. */
const FIND_TIMEOUT_MS = 20_000;
const FIND_DELAY_MS = 100;
/** A new manager among few can delay the others for seconds. */
const CERTIFICATE_TIMEOUT_MS = 20_000;
const WELCOME_TIMEOUT_SECONDS = 20;
/** dockerd's words. */
const LATE = 'Timeout was reached before node joined.';

/**
 * Joins the cluster of a token. Until the first manager has answered nothing is kept; after 20 s the rest goes on
 * by itself.
 */
export async function joinCluster(
  needs: MemberNeeds,
  { listen, advertise, dataPath, remotes, token }: Request,
): Promise<Member> {
  const joinToken = parseToken(token);
  if (remotes.length === 0) throw new EngineError('invalid', 'at least 1 RemoteAddr is required to join');
  const addresses = remotes.map(remoteAddress);
  const root = await findRoot(needs.clock, addresses, joinToken);
  await using undo = new AsyncDisposableStack();
  undo.defer(() => needs.folder.remove());
  const { publicKey, privateKey, csr } = newRequest();
  using newcomer = new WireClient({ root }, needs.clock);
  const asked = {
    path: '/v1/certificates',
    body: { publicKey, csr, token },
    answer: CertificateAnswer,
    milliseconds: CERTIFICATE_TIMEOUT_MS,
  };
  const { nodeId, clusterId, role, certificate, issuer } = await inTime(
    askLeader({ client: newcomer, clock: needs.clock, managers: () => addresses }, asked),
  );
  if (role === 'manager') findEtcd();
  const member = undo.use(
    new Member(needs, {
      version: 1,
      nodeId,
      clusterId,
      role,
      certificate,
      key: privateKey,
      root,
      ...(issuer !== undefined && { issuer }),
      listen: addressText(listen),
      advertise: addressText(advertise),
      managers: addresses.map((address) => ({ id: '', address })),
      ...(dataPath && { dataPath }),
    }),
  );
  member.change({});
  const session = member.begin();
  const taken = role === 'manager' ? member.takeRole('manager') : Promise.resolve();
  await settlesWithin(Promise.all([session.welcomed, taken]), WELCOME_TIMEOUT_SECONDS, needs.clock);
  undo.move();
  return member;
}

/** The root of the cluster, from the first manager that answers: it is believed because the token has its digest. */
async function findRoot(
  clock: Clock,
  addresses: readonly string[],
  { rootDigest: expected }: JoinToken,
): Promise<string> {
  using stranger = new WireClient({}, clock);
  let turn = 0;
  try {
    return await retry({ clock, timeoutMs: FIND_TIMEOUT_MS, delayMs: FIND_DELAY_MS, isTransient }, async (leftMs) => {
      const address = addresses[turn++ % addresses.length]!;
      const { certificate } = await stranger.ask(address, '/v1/ca', undefined, RootAnswer, leftMs);
      if (digestOf(certificate) === expected) return firstCertificate(certificate); // no other root that comes with it
      throw new EngineError('failed', `remote CA does not match fingerprint. Expected: ${expected}`);
    });
  } catch (error) {
    if (!(error instanceof NotReached)) throw error;
    throw new EngineError('failed', `${LATE} ${error.message}`, { cause: error });
  }
}

function digestOf(certificate: string): string {
  try {
    return rootDigest(certificate);
  } catch (error) {
    if (error instanceof Error && (hasCode(error, 'ERR_OSSL_PEM_NO_START_LINE') || 'opensslErrorStack' in error))
      return '';
    throw error;
  }
}

async function inTime<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof EngineError) throw error;
    throw new EngineError('failed', `${LATE} ${messageOf(error)}`, {
      cause: error,
    });
  }
}

function isTransient(error: unknown): boolean {
  return error instanceof NotReached;
}
