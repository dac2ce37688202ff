import { testSteps } from '@gantry/testing/steps.contract.ts';

import { resizeSteps } from './versions.ts';

testSteps('resizeSteps', resizeSteps, [{ below: '1.25', status: 201 }]);
