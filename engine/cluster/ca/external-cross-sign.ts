import { X509Certificate } from 'node:crypto';

import type { Authority, ClusterRecord } from '../state/records.ts';
import { authorityRequest, issue, newKey } from './certificates.ts';
import { certificatesOf, firstAnswer, leadsTo, type Asking } from './external.ts';

/** The profile that a cfssl signs certificates of authorities by, as dockerd asks for it. */
const PROFILE = 'CA';
/** Basic constraints: an authority, as dockerd asks. cfssl itself goes by its profile. */
const IS_AUTHORITY = { id: '2.5.29.19', critical: true, value: '30030101ff' };

/** Asks external authorities of the present root for a certificate (PEM) of the root that follows, whose key is here. */
export async function crossSignExternally(
  asking: Asking,
  authorities: ClusterRecord['spec']['externalCas'],
  next: Authority,
): Promise<string> {
  const request = { certificate_request: authorityRequest(next), profile: PROFILE, extensions: [IS_AUTHORITY] };
  return await firstAnswer(asking, authorities, request, (certificate) => refuseOther(certificate, next, asking));
}

/** Throws for a certificate by which nodes of the present root would not believe one of the root that follows. */
function refuseOther(pem: string, next: Authority, { clock, root }: Asking): void {
  const [crossed, ...others] = certificatesOf(pem);
  if (crossed === undefined) throw new Error('the answer has no certificate');
  if (!crossed.ca)
    throw new Error(`the certificate is not that of an authority: the profile ${PROFILE} is missing there`);
  const subject = { name: 'probe' };
  const probe = issue(next, { subject, publicKey: newKey().publicKey, now: clock.now(), lifeSeconds: 60 });
  const leaf = new X509Certificate(probe);
  if (!leaf.checkIssued(crossed) || !leaf.verify(crossed.publicKey)) {
    throw new Error('the certificate is not for the name and key of the root that follows');
  }
  if (!leadsTo(new X509Certificate(root), crossed, others)) {
    throw new Error("the certificate does not lead to the cluster's root");
  }
}
