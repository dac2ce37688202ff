import type { Question } from '../../networks/overlay/members/withdrawals.ts';
import type { Overlays } from '../../networks/overlay/overlays.ts';
import type { FromLeader, FromNode } from '../wire/schemas.ts';

/** Passes the leader's messages about networks on to this node's part of them. */
export function applyNetworkNews(overlays: Overlays, message: FromLeader, answer: (message: FromNode) => void): void {
  const { attachments, withdrawals } = overlays;
  if (message.say === 'welcome') {
    attachments.use((wanted) => answer({ say: 'attachments', wanted }));
    attachments.begin();
    const ask = (question: Question): void => answer({ say: 'withdrawing', ...question });
    withdrawals.use(message.syncs === true ? ask : undefined); // an earlier version would end the session
  }
  if (message.say === 'unattached') attachments.refuse(message);
  if (message.say === 'withdrawn') withdrawals.answer(message.number);
  if (message.say === 'networks') overlays.keepOnly(message.ids);
  if (message.say === 'network') overlays.hear(message.news);
  if (message.say === 'sync') {
    overlays.settleAll();
    answer({ say: 'synced', number: message.number });
  }
}
