import { testSteps } from '@gantry/testing/steps.contract.ts';

import { imageListSteps } from './versions.ts';

const image = { Id: 'x', SharedSize: -1, Containers: 2 };

testSteps('imageListSteps', imageListSteps, [
  { below: '1.51', response: { now: [image], older: [{ ...image, Containers: -1 }] } },
  {
    below: '1.43',
    response: {
      now: [
        { ...image, RepoTags: [], RepoDigests: [] },
        { ...image, RepoTags: ['a:1'], RepoDigests: [] },
        { ...image, RepoTags: [], RepoDigests: ['a@b'] },
      ],
      older: [
        { ...image, RepoTags: ['<none>:<none>'], RepoDigests: ['<none>@<none>'] },
        { ...image, RepoTags: ['a:1'], RepoDigests: null },
        { ...image, RepoTags: null, RepoDigests: ['a@b'] },
      ],
    },
  },
]);
