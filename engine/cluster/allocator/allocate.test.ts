import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { SimulatedCluster } from '@gantry/testing/cluster/simulated-cluster.ts';

suite('addresses in the network of published ports', () => {
  test('a node gets none while the network is full, and all else goes on', () => {
    const cluster = new SimulatedCluster();
    const at = cluster.now.toString();
    const subnets = [{ subnet: '10.255.0.0/29', gateway: '10.255.0.1' }];
    const rest = { labels: {}, internal: false, ingress: true, encrypted: false, options: {}, vni: 4096, subnets };
    cluster.change((draft) =>
      draft.put('network', { id: 'in', createdAt: at, updatedAt: at, name: 'ingress', ...rest }),
    );
    for (let number = 1; number <= 8; number += 1) cluster.node(`n${number}`);
    const endpoint = {
      mode: 'vip',
      ports: [{ protocol: 'tcp', targetPort: 80, publishedPort: 8080 }],
    } as const;

    cluster.service('web', { endpoint, mode: { kind: 'replicated', replicas: 0 } });
    cluster.turn();
    cluster.service('plain', { mode: { kind: 'replicated', replicas: 3 } });
    cluster.settle();

    assert.equal(cluster.running('plain').length, 3);
    const withAddress = (): number =>
      [...cluster.replica.all('node')].filter(({ ingress }) => ingress !== undefined).length;
    assert.equal(withAddress(), 4); // of six addresses the gateway and the service have one each
    cluster.change((draft) => draft.delete('node', 'n1'));
    cluster.turn();
    assert.equal(withAddress(), 4); // another node has the one that is free now
  });
});
