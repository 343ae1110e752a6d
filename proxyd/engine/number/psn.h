/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * PSNs and marks, with a type for each side that numbers them. A frame bears a plain number; what
 * it counts depends on where the frame came from. From there on the compiler finds each mix of two:
 *
 *	host_psn  as the requester's host numbers its requests
 *	wire_psn  as they are numbered over the WAN (SINGLE: toward the responder). It differs from
 *		  the host's number once the appliance near the host adds requests of its own
 *	far_psn	  ACCEPTOR: as the responder gets them. It differs from the wire's number once the
 *		  appliance near the responder adds READs of its own (announce/)
 *
 * Two doors lead from one to another: psn_map.h between host and wire, far_map.h between wire and
 * responder. Where nothing was added the numbers are the same: psn_same_*() change the type there,
 * each for a reason.
 *
 * The functions of wire/psn.h take any of these types, but two of the same type.
 */
#ifndef LONGHAUL_ENGINE_NUMBER_PSN_H
#define LONGHAUL_ENGINE_NUMBER_PSN_H

#include "wire/frame.h"
#include "wire/psn.h"

struct host_psn {
	uint32_t v;
};

struct wire_psn {
	uint32_t v;
};

struct far_psn {
	uint32_t v;
};

#define HOST_NONE ((struct host_psn){PSN_NONE})
#define WIRE_NONE ((struct wire_psn){PSN_NONE})
#define FAR_NONE  ((struct far_psn){PSN_NONE})

/** struct host_mark, wire_mark, far_mark - a PSN together with what an ACK just below it would say.
 * @msn:     messages completed below it
 * @ackable: the packet just below is a SEND or WRITE: an ACK may bear its PSN */
struct host_mark {
	struct host_psn psn;
	uint32_t msn : 24;
	uint32_t ackable : 8;
};

struct wire_mark {
	struct wire_psn psn;
	uint32_t msn : 24;
	uint32_t ackable : 8;
};

struct far_mark {
	struct far_psn psn;
	uint32_t msn : 24;
	uint32_t ackable : 8;
};

/** host_psn_of, wire_psn_of, far_psn_of - the PSN of @f, by where it came from. */
static inline struct host_psn host_psn_of(const struct frame *f)
{
	return (struct host_psn){f->psn};
}

static inline struct wire_psn wire_psn_of(const struct frame *f)
{
	return (struct wire_psn){f->psn};
}

static inline struct far_psn far_psn_of(const struct frame *f)
{
	return (struct far_psn){f->psn};
}

/** psn_same_wire, psn_same_host, psn_same_far, mark_same_wire, mark_same_host - both number alike
 * where @p is: the lane has no map yet or any more, or @p is from before its handover. */
static inline struct wire_psn psn_same_wire(struct host_psn p)
{
	return (struct wire_psn){p.v};
}

static inline struct far_psn psn_same_far(struct wire_psn p)
{
	return (struct far_psn){p.v};
}

static inline struct host_psn psn_same_host(struct wire_psn p)
{
	return (struct host_psn){p.v};
}

static inline struct wire_mark mark_same_wire(struct host_mark m)
{
	return (struct wire_mark){psn_same_wire(m.psn), m.msn, m.ackable};
}

static inline struct host_mark mark_same_host(struct wire_mark m)
{
	return (struct host_mark){psn_same_host(m.psn), m.msn, m.ackable};
}

/* ---- arithmetic: that of wire/psn.h for each type ---- */

#define PSN_ARITHMETIC(who)                                                                        \
	static inline struct who##_psn who##_psn_add(struct who##_psn p, uint32_t n)               \
	{                                                                                          \
		return (struct who##_psn){psn_add(p.v, n)};                                        \
	}                                                                                          \
	static inline struct who##_psn who##_psn_sub(struct who##_psn p, uint32_t n)               \
	{                                                                                          \
		return (struct who##_psn){psn_sub(p.v, n)};                                        \
	}                                                                                          \
	static inline int32_t who##_psn_diff(struct who##_psn a, struct who##_psn b)               \
	{                                                                                          \
		return psn_diff(a.v, b.v);                                                         \
	}                                                                                          \
	static inline uint32_t who##_psn_past(struct who##_psn a, struct who##_psn b)              \
	{                                                                                          \
		return psn_sub(a.v, b.v);                                                          \
	}                                                                                          \
	static inline bool who##_psn_is(struct who##_psn a, struct who##_psn b)                    \
	{                                                                                          \
		return a.v == b.v;                                                                 \
	}                                                                                          \
	static inline bool who##_psn_before(struct who##_psn a, struct who##_psn b)                \
	{                                                                                          \
		return psn_before(a.v, b.v);                                                       \
	}                                                                                          \
	static inline bool who##_psn_after(struct who##_psn a, struct who##_psn b)                 \
	{                                                                                          \
		return psn_after(a.v, b.v);                                                        \
	}                                                                                          \
	static inline bool who##_psn_in(struct who##_psn p, struct who##_psn from,                 \
					struct who##_psn end)                                      \
	{                                                                                          \
		return psn_in(p.v, from.v, end.v);                                                 \
	}                                                                                          \
	static inline void who##_mark_step(struct who##_mark *m, uint32_t span, bool eom,          \
					   bool ackable)                                           \
	{                                                                                          \
		m->psn = who##_psn_add(m->psn, span);                                              \
		m->msn += eom;                                                                     \
		m->ackable = ackable;                                                              \
	}

PSN_ARITHMETIC(host)
PSN_ARITHMETIC(wire)
PSN_ARITHMETIC(far)

#define PSN_TYPED(f)                                                                               \
	struct host_psn : host_##f, struct wire_psn : wire_##f, struct far_psn : far_##f

#define psn_add(p, n)	 _Generic((p), PSN_TYPED(psn_add), default : psn_add)(p, n)
#define psn_sub(p, n)	 _Generic((p), PSN_TYPED(psn_sub), default : psn_sub)(p, n)
#define psn_diff(a, b)	 _Generic((a), PSN_TYPED(psn_diff), default : psn_diff)(a, b)
#define psn_before(a, b) _Generic((a), PSN_TYPED(psn_before), default : psn_before)(a, b)
#define psn_after(a, b)	 _Generic((a), PSN_TYPED(psn_after), default : psn_after)(a, b)
#define psn_in(p, a, b)	 _Generic((p), PSN_TYPED(psn_in), default : psn_in)(p, a, b)

/** psn_past - how far @a is past @b, in 0 .. 2^24-1. */
#define psn_past(a, b) _Generic((a), PSN_TYPED(psn_past))(a, b)
/** psn_is - whether the two are the same. */
#define psn_is(a, b)   _Generic((a), PSN_TYPED(psn_is))(a, b)
/** psn_known - whether there is any. */
#define psn_known(p)   ((p).v != PSN_NONE)

/** psn_raise - *@p becomes @to if that is after it. */
#define psn_raise(p, to)                                                                           \
	do {                                                                                       \
		if (psn_after(to, *(p)))                                                           \
			*(p) = (to);                                                               \
	} while (0)

/** mark_step - @m behind a packet of @span PSNs; @eom: of a message; @ackable: by an ACK. */
#define mark_step(m, span, eom, ackable)                                                           \
	_Generic((m), struct host_mark *                                                           \
		 : host_mark_step, struct wire_mark *                                              \
		 : wire_mark_step, struct far_mark *                                               \
		 : far_mark_step)(m, span, eom, ackable)

#endif
