import { testErrorStatuses, testSteps } from '../http/versions/steps.contract.ts';
import { createSteps, wrongState } from './versions.ts';

testSteps('createSteps', createSteps, [
  {
    below: '1.25',
    request: {
      now: { Image: 'busybox', HostConfig: { AutoRemove: true, Privileged: true } },
      older: { Image: 'busybox', HostConfig: { AutoRemove: false, Privileged: true } },
    },
  },
]);

testErrorStatuses('wrongState', wrongState, [{ kind: 'conflict', below: '1.25', now: 409, older: 500 }]);
