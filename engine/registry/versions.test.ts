import { testErrorStatuses } from '@gantry/testing/steps.contract.ts';

import { refusedLogin } from './versions.ts';

testErrorStatuses('refusedLogin', refusedLogin, [{ kind: 'unauthorized', below: '1.39', now: 401, older: 500 }]);
