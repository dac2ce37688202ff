import { ipBytes } from '../../lib/notations/ip-address.ts';
import { attribute, nested, NLM_F, u32, type Netlink } from './netlink.ts';

const IPCTNL_DELETE = (1 << 8) | 2;
const NLA_NESTED = 0x8000;
const AF_INET = 2;
const AF_INET6 = 10;
const CTA = { tupleReply: 2, filter: 25 } as const;
const CTA_TUPLE_IP = 1;
const CTA_TUPLE_PROTO = 2;
const CTA_IP_V4_SRC = 1;
const CTA_IP_V6_SRC = 3;
const CTA_PROTO_NUM = 1;
const CTA_FILTER_ORIG_FLAGS = 1;
const CTA_FILTER_REPLY_FLAGS = 2;
const MATCH = { ipSource: 1 << 0, protocol: 1 << 3 } as const;
const IPPROTO_UDP = 17;

/**
 * Makes the kernel forget the UDP flows that it translates to `ip`.
 *
 * UDP has no end of a connection, so a client that keeps sending would reach the former owner of a published port for
 * minutes. Kernels before 6.10 cannot filter here and answer `EINVAL` or `ENOENT`.
 */
export function forgetUdpFlows(netfilter: Netlink, ip: string): void {
  const address = ipBytes(ip);
  const isSix = address.length === 16;
  const head = Buffer.from([isSix ? AF_INET6 : AF_INET, 0, 0, 0]);
  const tuple = nested(
    CTA.tupleReply | NLA_NESTED,
    nested(CTA_TUPLE_IP | NLA_NESTED, attribute(isSix ? CTA_IP_V6_SRC : CTA_IP_V4_SRC, address)),
    nested(CTA_TUPLE_PROTO | NLA_NESTED, attribute(CTA_PROTO_NUM, Buffer.from([IPPROTO_UDP]))),
  );
  const filter = nested(
    CTA.filter | NLA_NESTED,
    attribute(CTA_FILTER_ORIG_FLAGS, u32(0)),
    attribute(CTA_FILTER_REPLY_FLAGS, u32(MATCH.ipSource | MATCH.protocol)),
  );
  netfilter.apply({
    type: IPCTNL_DELETE,
    flags: NLM_F.ack,
    body: Buffer.concat([head, tuple, filter]),
    call: 'IPCTNL_MSG_CT_DELETE',
    values: ['udp', ip],
  });
}
