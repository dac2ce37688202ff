import { testSteps } from '@gantry/testing/steps.contract.ts';

import { infoSteps } from './versions.ts';

testSteps('infoSteps', infoSteps, [
  {
    below: '1.25',
    response: {
      now: { ID: 'x', SecurityOptions: ['name=apparmor', 'name=seccomp,profile=default'] },
      older: { ID: 'x', SecurityOptions: ['apparmor', 'seccomp'] },
    },
  },
]);
