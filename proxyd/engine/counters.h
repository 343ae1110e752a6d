/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every reason for which the engine drops, generates or resends a packet has a counter with a name;
 * the list below is the whole of them, shown by `longhaul stats show`.
 */
#ifndef LONGHAUL_ENGINE_COUNTERS_H
#define LONGHAUL_ENGINE_COUNTERS_H

#include <stdint.h>

#define ENGINE_COUNTERS(X)                                                                         \
	X(RX_LAN, "rx-lan", "frames from the LAN port")                                            \
	X(RX_WAN, "rx-wan", "frames from the WAN port")                                            \
	X(TX_LAN, "tx-lan", "frames to the LAN port")                                              \
	X(TX_WAN, "tx-wan", "frames to the WAN port")                                              \
	X(PASSED, "passed", "frames passed through unchanged")                                     \
	X(FLOOD_DROPPED, "flood-dropped", "requests not held, dropped: such flood the link")       \
	X(TX_FULL, "tx-full", "frames that a port had no room for")                                \
	X(TX_IMPOSSIBLE, "tx-impossible", "frames that a port can never send, dropped")            \
	X(BAD_FRAME, "bad-frame", "frames that are no well-formed RoCEv2, passed through")         \
	X(BAD_ICRC, "bad-icrc", "requests and responses of held lanes with a wrong ICRC, dropped") \
	X(BAD_OPCODE, "bad-opcode", "unknown opcodes, reserved AETH syndromes: passed")            \
	X(NOT_RC, "not-rc", "UD, UC and other services, passed through")                           \
	X(CNP, "cnp", "congestion notifications passed")                                           \
	X(CNP_HEEDED, "cnp-heeded", "congestion notifications that slowed a lane")                 \
	X(CNP_SENT, "cnp-sent", "congestion notifications to requesters, because the pool fills")  \
	X(TABLE_FULL, "table-full", "new flows without a place, passed through")                   \
	X(NO_RULE, "no-rule", "frames that no rule wants, passed through")                         \
	X(PSEUDO_ACKS, "pseudo-acks", "ACKs answered in the responder's stead")                    \
	X(ATOMICS_MADE, "atomics-made", "ATOMIC ACKs made here (atomic = discard-result)")         \
	X(ATOMICS_DROPPED, "atomics-dropped", "true ATOMIC ACKs dropped: one was made before")     \
	X(ATOMICS_AHEAD, "atomics-ahead", "FetchAdds asked ahead of hosts (atomic = prefetch)")    \
	X(ATOMICS_UNASKED, "atomics-unasked", "those that hosts never asked: memory changed")      \
	X(TRUE_ACKS, "true-acks", "ACKs of the responder consumed")                                \
	X(TRUE_NAKS, "true-naks", "NAKs and RNR NAKs of the responder consumed")                   \
	X(NAKS_SENT, "naks-sent", "sequence NAKs sent to a near requester")                        \
	X(FATAL_NAKS, "fatal-naks", "fatal NAKs passed on to a requester")                         \
	X(DUP_REQUESTS, "dup-requests", "requests resent by a near requester, dropped")            \
	X(DUP_PASSED, "dup-passed", "requests resent after their ACK, passed on")                  \
	X(DUP_STREAM, "dup-stream", "stream packets that had arrived already, dropped")            \
	X(DUP_READS, "dup-reads", "duplicate READs and ATOMICs swallowed")                         \
	X(DUP_READS_PASSED, "dup-reads-passed", "duplicate READs and ATOMICs passed on")           \
	X(FOREIGN, "foreign-requests", "another queue pair's requests while custody is owed")      \
	X(GAPS, "gaps", "requests ahead of their turn from a near requester, dropped")             \
	X(NO_ROOM, "no-room", "requests dropped because the pool was full")                        \
	X(HELD_BACK, "held-back", "acknowledgements withheld because the pool fills")              \
	X(OUT_OF_WINDOW, "out-of-window", "stream packets beyond the receive window, dropped")     \
	X(HOLES, "holes", "stream packets refused: one hole too many")                             \
	X(UNSEALED, "unsealed",                                                                    \
	  "packets of held connections from the WAN that the peer did not send, dropped (seal)")   \
	X(SEAL_WRONG, "seal-wrong",                                                                \
	  "packets of held connections from the WAN with a wrong seal: damaged or forged (seal)")  \
	X(RETX_WAN, "retx-wan", "stream packets sent again over the WAN")                          \
	X(SENT_TWICE, "sent-twice", "packets sent twice at once, as packets get lost")             \
	X(RETX_LAN, "retx-lan", "requests sent again to a near responder")                         \
	X(RETX_SPURIOUS, "retx-spurious", "retransmissions that turned out not to be needed")      \
	X(TIMEOUTS, "timeouts", "loss timers that fired")                                          \
	X(RNR, "rnr", "RNR NAKs waited out")                                                       \
	X(STALE_ACK, "stale-ack", "responses outside the outstanding range, ignored")              \
	X(STRAY_RESPONSE, "stray-response", "READ or ATOMIC responses that match no request")      \
	X(READS_GIVEN_UP, "reads-given-up", "READs executed that have no answer any more")         \
	X(READS_RENUMBERED, "reads-renumbered", "READs sent again with new PSNs after a loss")     \
	X(READS_ASKED_AGAIN, "reads-asked-again", "READs asked again because no answer came")      \
	X(READS_TOLD, "reads-told", "READs the peer was told to make (prefetch = responder)")      \
	X(READS_MADE, "reads-made", "READs made here because the peer told of them")               \
	X(SOLO_READS, "solo-reads", "READs asked near the responder before their host did")        \
	X(SOLO_MET, "solo-met", "READs of hosts that had been asked so")                           \
	X(SOLO_REPEATED, "solo-repeated", "those that hosts asked again: lost, or too early")      \
	X(SOLO_FAULTS, "solo-faults", "queue pairs put into the error state for such READs")       \
	X(ANNOUNCE_MISMATCHES, "announce-mismatches", "READs of targets that fit no command")      \
	X(NUMBERS_FULL, "numbers-full", "requests whose number could not be kept: never")          \
	X(PUSH_DROPPED, "push-dropped", "data READ ahead of no connection or with a wrong tag")    \
	X(PARITY_SENT, "parity-sent", "frames sent from which one lost packet of 32 can be made")  \
	X(PARITY_REPAIRED, "parity-repaired", "lost packets that were made from parity")           \
	X(PARITY_WRONG, "parity-wrong",                                                            \
	  "parity of no held lane, or from which no true packet could be made")                    \
	X(BAD_SEQUENCE, "bad-sequence", "requests with an opcode or length out of order")          \
	X(BAD_REPORT, "bad-report", "peer reports that do not fit, ignored")                       \
	X(OPENS, "opens", "lanes taken into custody")                                              \
	X(REFUSALS, "refusals", "lanes that the peer refused")                                     \
	X(INVARIANTS, "invariants-broken", "lanes broken by an error of longhaul")                 \
	X(FAULTS, "faults", "lanes whose custody could not be honoured")                           \
	X(LOST_PACKETS, "lost-packets", "packets in custody when their lane faulted")              \
	X(LOST_BYTES, "lost-bytes", "their bytes")                                                 \
	X(ORDER_BARRIERS, "order-barriers", "barriers between queue pairs (order = hosts)")        \
	X(ORDER_DROPPED, "order-dropped", "requests dropped until earlier ones are delivered")     \
	X(ORDER_FAULTS, "order-faults", "lanes lost because one before them was")                  \
	X(FAULT_PROBES, "fault-probes", "requests sent to break the QP of a requester in fault")   \
	X(FAULT_BROKEN, "fault-broken", "QPs that refused one and thereby failed")                 \
	X(FAULT_SILENT, "fault-silent", "QPs in fault that answer nothing: failed, or gone")       \
	X(FAULT_UNBROKEN, "fault-unbroken", "QPs in fault that answer and would not fail")         \
	X(FAULT_DROPPED, "fault-dropped", "packets of connections in fault, dropped")              \
	X(FAULT_DREQS, "fault-dreqs", "disconnect requests sent for connections in fault")         \
	X(HOSTS_ASKED, "hosts-asked", "questions to hosts whose queue pair is silent")             \
	X(ABANDONED, "abandoned", "lanes that both hosts gave up with something in custody")       \
	X(ABANDONED_PACKETS, "abandoned-packets", "packets in custody then")                       \
	X(ABANDONED_BYTES, "abandoned-bytes", "their bytes")                                       \
	X(CM, "cm", "connection manager datagrams understood")                                     \
	X(LEARN_PROBES, "learn-probes", "requests sent again to see which queue pair answers")     \
	X(LEARN_CONTRADICTIONS, "learn-contradictions", "PSN matches that spoke against a pair")

enum engine_counter {
#define X(id, name, help) EC_##id,
	ENGINE_COUNTERS(X)
#undef X
		EC_COUNT
};

/** engine_counter_name, engine_counter_help - text of counter @c. */
const char *engine_counter_name(enum engine_counter c);
const char *engine_counter_help(enum engine_counter c);

#endif
