import { createPublicKey, X509Certificate } from 'node:crypto';
import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';

import { Type } from 'typebox';

import { parseBoundedJson, UnboundedJsonError } from '../../lib/bounded-json.ts';
import { readWhole } from '../../lib/bytes/read-whole.ts';
import type { Clock } from '../../lib/clock.ts';
import { EngineError } from '../../lib/errors.ts';
import { messageOf } from '../../lib/failure-message.ts';
import { lazyCheck } from '../../lib/lazy-check.ts';
import type { ClusterSpec } from '../state/records.ts';
import type { Subject } from './certificates.ts';

/** A node's request for a certificate: the request (PKCS #10) and its public key, both in PEM. */
type CertificateWish = Readonly<{ csr: string; publicKey: string; subject: Required<Subject> }>;
/** The caller's certificate (PEM). A new node has none. */
export type Asking = Readonly<{
  clock: Clock;
  root: string;
  identity?: Readonly<{ certificate: string; key: string }>;
}>;

const ANSWER_TIMEOUT_MS = 5000;
const MAX_ANSWER_BYTES = 64 * 1024;
const MAX_CHAIN = 5;
/** The difference that clocks may have. */
const SKEW_MS = 3600 * 1000;

const Answer = lazyCheck(
  Type.Object({
    success: Type.Boolean(),
    result: Type.Optional(Type.Union([Type.Object({ certificate: Type.String() }), Type.Null()])),
    errors: Type.Optional(Type.Union([Type.Array(Type.Object({ message: Type.String() })), Type.Null()])),
  }),
);

/**
 * A certificate of an external authority (cfssl's `sign`), in PEM with its chain: the first that answers is believed, if
 * what it has signed is what was asked for and leads to the cluster's root. Throws `unavailable` where none does.
 */
export async function signExternally(
  asking: Asking,
  authorities: ClusterSpec['externalCas'],
  wish: CertificateWish,
): Promise<string> {
  const { name, unit, organization } = wish.subject;
  const request = {
    certificate_request: wish.csr,
    hosts: [name, unit],
    subject: { CN: name, names: [{ OU: unit, O: organization }] },
  };
  return await firstAnswer(asking, authorities, request, (certificate) => check(certificate, wish, asking));
}

/** Returns the first certificate that passes a check; throws `unavailable` with all reasons where none does. */
export async function firstAnswer(
  asking: Asking,
  authorities: ClusterSpec['externalCas'],
  request: object,
  check: (certificate: string) => void,
): Promise<string> {
  const reasons: string[] = [];
  for (const { url } of authorities) {
    try {
      const certificate = await ask(asking, url, request);
      check(certificate);
      return certificate;
    } catch (error) {
      reasons.push(`${url}: ${messageOf(error)}`);
    }
  }
  throw new EngineError('unavailable', `no external certificate authority signs: ${reasons.join('; ')}`);
}

async function ask({ clock, root, identity }: Asking, url: string, wanted: object): Promise<string> {
  const body = JSON.stringify(wanted);
  const { protocol } = new URL(url);
  const isTls = protocol === 'https:';
  const { request } = isTls ? https : http;
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const trust = isTls ? { ca: root, ...(identity && { cert: identity.certificate, key: identity.key }) } : {};
  const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) };
  const outgoing: ClientRequest = request(url, { method: 'POST', agent: false, headers, ...trust }, resolve);
  const late = Promise.withResolvers<never>();
  using _late = clock.after(ANSWER_TIMEOUT_MS, () => {
    late.reject(new Error(`no answer within ${ANSWER_TIMEOUT_MS / 1000} s`));
  });
  outgoing.on('error', reject);
  outgoing.end(body);
  try {
    return certificateIn(await Promise.race([textOf(promise), late.promise]));
  } finally {
    outgoing.destroy();
  }
}

async function textOf(answer: Promise<IncomingMessage>): Promise<string> {
  const read = await readWhole(await answer, MAX_ANSWER_BYTES);
  if (read === undefined) throw new Error('the answer is larger than 64 KB');
  return read.toString('latin1');
}

function certificateIn(text: string): string {
  let answer: unknown;
  try {
    answer = parseBoundedJson(text);
  } catch (error) {
    if (error instanceof UnboundedJsonError)
      throw new Error(`the answer is too large: ${error.message}`, { cause: error });
    throw new Error(`the answer is not JSON: ${text.slice(0, 100)}`, { cause: error });
  }
  if (!Answer.Check(answer)) throw new Error('the answer is not one of cfssl');
  if (!answer.success || answer.result === undefined || answer.result === null) {
    const said = (answer.errors ?? []).map(({ message }) => message).join(', ');
    throw new Error(`it refuses: ${said}`);
  }
  return answer.result.certificate;
}

export function certificatesOf(pem: string): X509Certificate[] {
  const texts = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return texts.map((each) => new X509Certificate(each));
}

/** Throws for a certificate that is not the wished one, or not of the cluster's root. */
function check(pem: string, { publicKey, subject }: CertificateWish, { clock, root }: Asking): void {
  const [leaf, ...others] = certificatesOf(pem);
  if (leaf === undefined) throw new Error('the answer has no certificate');
  if (leaf.ca) throw new Error('the certificate is that of an authority');
  const spki = { type: 'spki', format: 'der' } as const;
  if (!leaf.publicKey.export(spki).equals(createPublicKey(publicKey).export(spki))) {
    throw new Error('the certificate is for another key');
  }
  const { CN, OU, O } = leaf.toLegacyObject().subject as unknown as Record<string, unknown>;
  if (CN !== subject.name || OU !== subject.unit || O !== subject.organization) {
    throw new Error(`the certificate is for another subject: ${leaf.subject.replaceAll('\n', ', ')}`);
  }
  for (const host of [subject.name, subject.unit]) {
    if (leaf.checkHost(host) === undefined) throw new Error(`the certificate does not name the host ${host}`);
  }
  const nowMs = clock.now().epochMilliseconds;
  if (leaf.validFromDate.getTime() > nowMs + SKEW_MS || leaf.validToDate.getTime() < nowMs) {
    throw new Error('the certificate is not valid now');
  }
  if (!leadsTo(new X509Certificate(root), leaf, others)) {
    throw new Error("the certificate does not lead to the cluster's root");
  }
}

/** Whether a chain of authorities leads from a certificate to the root. */
export function leadsTo(root: X509Certificate, leaf: X509Certificate, others: readonly X509Certificate[]): boolean {
  let current = leaf;
  for (let length = 0; length < MAX_CHAIN; length += 1) {
    if (isIssuedBy(current, root)) return true;
    const next = others.find((other) => other.ca && other !== current && isIssuedBy(current, other));
    if (next === undefined) return false;
    current = next;
  }
  return false;
}

function isIssuedBy(one: X509Certificate, other: X509Certificate): boolean {
  return one.checkIssued(other) && one.verify(other.publicKey);
}
