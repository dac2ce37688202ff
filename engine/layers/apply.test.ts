import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';

import { makeLayers } from './apply.ts';
import type { Layer } from './records.ts';

/** The work on three layers, each of which ends when the test says so. */
function three(): {
  layers: Promise<Layer[]>;
  begun: string[];
  end: PromiseWithResolvers<Layer>[];
} {
  const begun: string[] = [];
  const end = Array.from({ length: 3 }, () => Promise.withResolvers<Layer>());
  const layers = makeLayers(['base', 'middle', 'top'], async (item, index) => {
    begun.push(item);
    return await end[index]!.promise;
  });
  layers.catch(() => undefined); // the test looks at it later
  return { layers, begun, end };
}

const layer = (chainId: string): Layer => ({ chainId }) as Layer;

suite('the layers of an image', () => {
  test('are made two at a time, base first', async () => {
    const { layers, begun, end } = three();

    await turn();
    assert.deepEqual(begun, ['base', 'middle']);
    end[1]!.resolve(layer('middle'));
    await turn();
    assert.deepEqual(begun, ['base', 'middle'], 'the base is not there yet');
    end[0]!.resolve(layer('base'));
    await turn();
    assert.deepEqual(begun, ['base', 'middle', 'top']);
    end[2]!.resolve(layer('top'));

    assert.deepEqual(await layers, ['base', 'middle', 'top'].map(layer));
  });

  test('fail with the reason of the lowest, when nothing is under way any more', async () => {
    const { layers, begun, end } = three();
    let isOver = false;
    layers.catch(() => (isOver = true));

    end[1]!.reject(new Error('middle'));
    await turn();
    assert.equal(isOver, false, 'the base is still being made');
    end[0]!.reject(new Error('base'));

    await assert.rejects(layers, { message: 'base' });
    assert.deepEqual(begun, ['base', 'middle']);
  });
});
