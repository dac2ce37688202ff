import { deliveringDriver } from '../delivering.ts';
import { checkSplunk } from './splunk-options.ts';
import { SplunkSender } from './splunk-sender.ts';

/** The HTTP event collector of Splunk. */
export const splunk = deliveringDriver({
  name: 'splunk',
  options: [
    'splunk-url',
    'splunk-token',
    'splunk-source',
    'splunk-sourcetype',
    'splunk-index',
    'splunk-capath',
    'splunk-caname',
    'splunk-insecureskipverify',
    'splunk-format',
    'splunk-verify-connection',
    'splunk-gzip',
    'splunk-gzip-level',
    'splunk-index-acknowledgment',
    'env',
    'env-regex',
    'labels',
    'labels-regex',
    'tag',
  ],
  check: checkSplunk,
  deliver: async (context) => new SplunkSender(context),
});
