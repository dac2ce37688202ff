import { testSteps } from '@gantry/testing/steps.contract.ts';

import { connectSteps } from './versions.ts';

testSteps('connectSteps', connectSteps, [
  {
    below: '1.54',
    request: {
      now: { Container: 'a', EndpointConfig: { MacAddress: '02:42:0a:01:00:02', Aliases: ['b'] } },
      older: { Container: 'a', EndpointConfig: { Aliases: ['b'] } },
    },
  },
]);
