import { testSteps } from '@gantry/testing/steps.contract.ts';

import { connectSteps, createSteps, inspectSteps, listSteps } from './versions.ts';

testSteps('createSteps', createSteps, [
  { below: '1.48', request: { now: { Name: 'a', EnableIPv4: false }, older: { Name: 'a' } } },
  {
    below: '1.44',
    request: {
      now: { Name: 'a', CheckDuplicate: true },
      older: { Name: 'a', CheckDuplicate: true, allowsDuplicates: false },
    },
  },
  { below: '1.25', request: { now: { Name: 'a' }, older: { Name: 'a', needsSixSubnet: true } } },
]);

const network = { Name: 'a', EnableIPv6: false };
const Status = { IPAM: { Subnets: {} } };

testSteps('inspectSteps', inspectSteps, [
  {
    below: '1.52',
    response: { now: { ...network, EnableIPv4: true, Status }, older: { ...network, EnableIPv4: true } },
  },
  { below: '1.48', response: { now: { ...network, EnableIPv4: true }, older: network } },
]);

testSteps('listSteps', listSteps, [
  { below: '1.48', response: { now: [{ ...network, EnableIPv4: true }], older: [network] } },
]);

testSteps('connectSteps', connectSteps, [
  {
    below: '1.54',
    request: {
      now: { Container: 'a', EndpointConfig: { MacAddress: '02:42:0a:01:00:02', Aliases: ['b'] } },
      older: { Container: 'a', EndpointConfig: { Aliases: ['b'] } },
    },
  },
]);
