import { EngineError } from '../../../lib/errors.ts';
import { bytesOf } from '../../../lib/notations/bytes-of.ts';
import { booleanOption } from '../../boolean-option.ts';
import type { LogOptions } from '../../driver.ts';
import { hostAndPort, transportUrl, withoutBrackets, type HostAndPort } from '../../receivers/address.ts';
import { checkTag } from '../../tag.ts';
import { deliveringDriver } from '../delivering.ts';
import { fluentdSender } from './fluentd-sender.ts';

type FluentdAddress = HostAndPort | { path: string };

const PORT = 24_224;

/** The forward protocol of fluentd and fluent-bit. */
export const fluentd = deliveringDriver({
  name: 'fluentd',
  options: [
    'env',
    'env-regex',
    'labels',
    'labels-regex',
    'tag',
    'fluentd-address',
    'fluentd-async',
    'fluentd-async-connect',
    'fluentd-buffer-limit',
    'fluentd-max-retries',
    'fluentd-request-ack',
    'fluentd-retry-wait',
    'fluentd-sub-second-precision',
  ],
  check: checkOptions,
  deliver: async (context) => fluentdSender(context, addressOf),
});

/** Delivery is always asynchronous, and retried until it succeeds: other options are checked and ignored. */
function checkOptions(options: LogOptions): void {
  addressOf(options);
  const {
    'fluentd-buffer-limit': limit = '',
    'fluentd-retry-wait': wait = '',
    'fluentd-max-retries': retries = '',
  } = options;
  if (limit !== '') checkSize(limit);
  if (wait !== '') checkDuration(wait);
  if (retries !== '' && !/^\d{1,18}$/.test(retries)) {
    throw new EngineError('invalid', `strconv.ParseUint: parsing ${JSON.stringify(retries)}: invalid syntax`);
  }
  if ((options['fluentd-async'] ?? '') !== '' && (options['fluentd-async-connect'] ?? '') !== '') {
    const both = `'fluentd-async' and 'fluentd-async-connect`;
    throw new EngineError('invalid', `conflicting options: cannot specify both ${both}`);
  }
  for (const key of ['async', 'async-connect', 'sub-second-precision', 'request-ack'])
    booleanOption(options[`fluentd-${key}`]);
  checkTag(options['tag']);
}

function checkSize(written: string): void {
  try {
    bytesOf('fluentd-buffer-limit', written);
  } catch (error) {
    throw new EngineError('invalid', `invalid size: '${written}'`, { cause: error });
  }
}

/** A duration as Go writes it, such as `1s` or `1m30s`. */
function checkDuration(written: string): void {
  if (/^[-+]?(0|(\d+\.?\d*|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h))+$/.test(written)) return;
  const problem = /^[-+]?\d+(\.\d*)?$/.test(written) ? 'missing unit in duration' : 'invalid duration';
  throw new EngineError('invalid', `time: ${problem} ${JSON.stringify(written)}`);
}

function addressOf({ 'fluentd-address': written = '' }: LogOptions): FluentdAddress {
  const url = asGiven(written, () => transportUrl(written));
  if (url?.scheme === 'unix') return { path: url.path };
  if (url !== undefined && url.scheme !== 'tcp') {
    throw new EngineError('invalid', `unknown network ${url.scheme}`);
  }
  const address = url?.host ?? written;
  const given = address === '' ? undefined : asGiven(written, () => hostAndPort(address));
  return given ?? { host: address === '' ? '127.0.0.1' : withoutBrackets(address), port: PORT };
}

/** Adds the name of the option to a refusal. */
function asGiven<T>(written: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new EngineError('invalid', `invalid fluentd-address ${written}: ${reason}`, { cause: error });
  }
}
