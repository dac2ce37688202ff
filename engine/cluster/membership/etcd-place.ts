import { Type } from 'typebox';

import { newKey } from '../ca/certificates.ts';
import { parseUnlockKey } from '../keys/unlock-key.ts';
import { PeerAnswer } from '../wire/schemas.ts';
import { addressText, readAddress } from './addresses.ts';
import { askLeader, isPassing, type Asking } from './ask-leader.ts';
import type { Identity, MemberFolder } from './identity.ts';

const ASK_TIMEOUT_MS = 10_000;
/** etcd has one learner at a time, and refuses the next for seconds. */
const PEER_TIMEOUT_MS = 70_000;

/** Asks the leader for a place among the etcds, and keeps the keys of its answer. */
export async function requestPlace(
  leader: Asking,
  { advertise, nodeId }: Identity,
  folder: MemberFolder,
): Promise<NonNullable<Identity['joining']>> {
  const { publicKey, privateKey } = newKey();
  const { ip, port } = readAddress(advertise);
  const url = `https://${addressText({ ip, port: port + 1 })}`;
  const { certificate, ca, crl, raft, unlockKey, dataKey, ...peers } = await askLeader(leader, {
    path: '/v1/peers',
    body: { address: advertise, url, publicKey },
    answer: PeerAnswer,
    milliseconds: ASK_TIMEOUT_MS,
    answerMs: PEER_TIMEOUT_MS,
  });
  folder.removeEtcd();
  if (unlockKey !== undefined) folder.seal(parseUnlockKey(unlockKey));
  if (dataKey !== undefined) folder.writeDataKey(Buffer.from(dataKey, 'base64'));
  folder.writePeers({ certificate, ca, key: privateKey, crl: Buffer.from(crl, 'base64') });
  return { raft, members: peers.members.map(({ name, peerUrl }) => ({ name: name === '' ? nodeId : name, peerUrl })) };
}

/** Resolves when this node's etcd has a vote; rejects when the leader has given it up, or after the signal. */
export async function awaitVote(leader: Asking, over: AbortSignal, late: (error: unknown) => void): Promise<void> {
  const promotion = {
    path: '/v1/peers/promote',
    body: {},
    answer: Type.Object({}),
    milliseconds: ASK_TIMEOUT_MS,
    answerMs: PEER_TIMEOUT_MS,
  };
  for (;;) {
    try {
      await askLeader(leader, promotion);
      return;
    } catch (error) {
      if (over.aborted || !isPassing(error)) throw error;
      late(error);
    }
  }
}
