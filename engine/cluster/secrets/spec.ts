import { EngineError, refuseIf } from '../../lib/errors.ts';
import { isWithin } from '../../lib/notations/field-schemas.ts';
import { refuseArgument } from '../services/refuse-argument.ts';
import type { SecretRecord } from '../state/records.ts';
import { SECRET_KINDS, type SecretKind } from './kinds.ts';
import type { SecretBody } from './schema.ts';

type SecretSpec = Readonly<Pick<SecretRecord, 'name' | 'labels' | 'templating'> & { data: Buffer }>;

const NAME = /^[a-zA-Z0-9](?:[a-zA-Z0-9-_.]*[a-zA-Z0-9])?$/;
const MAX_NAME_LETTERS = 64;
/** The record of the largest config still fits into one request to etcd. */
const MAX_LABEL_BYTES = 64 * 1024;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** The specification of a new secret or config, checked; refusals have dockerd's words. */
export function readSecretSpec(kind: SecretKind, body: SecretBody): SecretSpec {
  const data = readData(body.Data ?? '');
  const { Name = '', Labels, Driver, Templating } = body;
  refuseArgument(Name === '', 'name must be provided');
  refuseArgument(
    Name.length > MAX_NAME_LETTERS || !NAME.test(Name),
    'invalid name, only 64 [a-zA-Z0-9-_.] characters allowed, and the start and end character must be [a-zA-Z0-9]',
  );
  if (kind === 'secret' && Driver) refuseDriver(Driver.Name ?? '');
  const { limitBytes } = SECRET_KINDS[kind];
  refuseArgument(
    data.length < 1 || data.length >= limitBytes,
    `${kind} data must be larger than 0 and less than ${limitBytes} bytes`,
  );
  checkLabels(kind, [Labels, Templating]);
  return {
    name: Name,
    labels: Labels ?? {},
    data,
    ...(Templating && { templating: { name: Templating.Name ?? '', options: Templating.Options ?? {} } }),
  };
}

/** Refuses labels and templating that a record has no room for. */
export function checkLabels(kind: SecretKind, texts: readonly unknown[]): void {
  refuseIf(!isWithin(MAX_LABEL_BYTES, texts), `the labels of a ${kind} have 64 KB at most`);
}

/** Decodes base64 as Go does, which skips line ends. */
export function readData(text: string): Buffer {
  const plain = text.replaceAll(/[\r\n]/g, '');
  if (!BASE64.test(plain)) {
    const at = plain.search(/[^A-Za-z0-9+/]/);
    throw new EngineError('invalid', `illegal base64 data at input byte ${at < 0 ? plain.length : at}`);
  }
  return Buffer.from(plain, 'base64');
}

/** No plugin here provides secrets. */
function refuseDriver(name: string): void {
  refuseArgument(name === '', 'secret driver must have a name');
  throw new EngineError('failed', `rpc error: code = Unknown desc = plugin "${name}" not found`);
}
