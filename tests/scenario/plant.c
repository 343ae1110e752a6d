// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "tests/scenario/plant.h"

#include "wire/icrc.h"
#include "wire/psn.h"

struct scene scene_of(struct recorded *r, int side)
{
	struct scene s = {.near = &r->film[lan_of(side)],
			  .near_wan = &r->film[wan_of(side)],
			  .far_wan = &r->film[wan_of(!side)],
			  .far = &r->film[lan_of(!side)]};

	s.near_mid = s.near->n * 6 / 10;
	s.far_mid = s.far->n * 6 / 10;
	return s;
}

/* ---- helpers ---- */

static uint32_t find_psn(const struct film *f, uint32_t psn, bool request)
{
	for (uint32_t i = 0; i < f->n; i++) {
		struct frame v = shot_view(&f->shot[i]);

		if (v.psn == psn && !!(v.op->flags & OPF_REQUEST) == request)
			return i;
	}
	fail_msg("no such PSN");
	return 0;
}

static uint32_t at_time(const struct film *f, uint64_t t)
{
	uint32_t i = f->n;

	while (i && f->shot[i - 1].t > t)
		i--;
	return i;
}

static struct shot *add(struct film *f, const struct shot *x, uint64_t t)
{
	struct shot copy = *x;
	uint32_t i = at_time(f, t);

	film_insert(f, i, t, copy.data, copy.len);
	return &f->shot[i];
}

/* ---- plants ---- */

static void an_early_ack(struct scene *s)
{
	uint32_t i = film_find(s->near, s->near_mid, ACK), k;
	struct shot x = s->near->shot[i];

	k = find_psn(s->near, shot_view(&x).psn, true);
	film_insert(s->near, k, s->near->shot[k].t, x.data, x.len);
	film_cut(s->near, i + 1);
}

static void an_ack_past_a_read(struct scene *s)
{
	uint32_t r = film_find(s->near, s->near_mid, READ), d = film_find(s->near, r, DATA), a;
	struct shot *x = &s->near->shot[film_find(s->near, s->near_mid, ACK)];

	a = add(s->near, x, s->near->shot[d].t) - s->near->shot;
	shot_renumber(&s->near->shot[a], shot_view(&s->near->shot[d]).psn, KEEP_IT, KEEP_IT);
}

static void an_ack_of_a_read(struct scene *s)
{
	uint32_t r = film_find(s->near, s->near_mid, READ);
	struct shot *x = &s->near->shot[film_find(s->near, s->near_mid, ACK)];

	x = add(s->near, x, s->near->shot[r].t);
	shot_renumber(x, shot_view(&s->near->shot[r]).psn, KEEP_IT, KEEP_IT);
}

static void a_true_ack_leaks(struct scene *s)
{
	struct shot x = s->far->shot[film_find(s->far, s->far_mid, ACK)];

	add(s->far_wan, &x, x.t + 5000);
	add(s->near_wan, &x, x.t + 3 * MS);
	add(s->near, &x, x.t + 3 * MS + 5000);
}

static void an_ack_out_of_nowhere(struct scene *s)
{
	struct shot x = s->far->shot[film_find(s->far, s->far_mid, ACK)];

	add(s->near, &x, x.t + 3 * MS);
}

static void a_nak_leaks(struct scene *s)
{
	struct shot x = s->far->shot[film_find(s->far, s->far_mid, ACK)];

	shot_renumber(add(s->near_wan, &x, x.t + 3 * MS), KEEP_IT, KEEP_IT, AETH_NAK_SEQ);
	shot_renumber(add(s->near, &x, x.t + 3 * MS + 5000), KEEP_IT, KEEP_IT, AETH_NAK_SEQ);
}

static void a_nak_of_its_own(struct scene *s)
{
	struct shot x = s->far->shot[film_find(s->far, s->far_mid, ACK)];

	shot_renumber(add(s->near, &x, x.t + 3 * MS), KEEP_IT, KEEP_IT, AETH_NAK_SEQ);
}

static void an_rnr_nak_leaks(struct scene *s)
{
	struct shot x = s->far->shot[film_find(s->far, s->far_mid, ACK)];

	shot_renumber(add(s->near_wan, &x, x.t + 3 * MS), KEEP_IT, KEEP_IT, AETH_RNR_NAK | 5);
	shot_renumber(add(s->near, &x, x.t + 3 * MS + 5000), KEEP_IT, KEEP_IT, AETH_RNR_NAK | 5);
}

static void a_request_twice(struct scene *s)
{
	struct shot x = s->far->shot[film_find(s->far, s->far_mid, DATA)];

	add(s->far, &x, x.t + 1);
}

static void a_request_after_its_ack(struct scene *s)
{
	struct shot x = s->far->shot[film_find(s->far, s->far_mid, DATA)];

	add(s->far, &x, x.t + 20 * MS);
}

static void a_read_after_its_answer(struct scene *s)
{
	struct shot x = s->far->shot[film_find(s->far, s->far_mid, READ)];

	add(s->far, &x, x.t + 20 * MS);
}

static void damage_near(struct scene *s)
{
	s->near->shot[film_find(s->near, s->near_mid, DATA)].data[80] ^= 1;
}

static void damage_far(struct scene *s)
{
	s->far->shot[film_find(s->far, s->far_mid, ACK)].data[50] ^= 1;
}

static void an_icrc_is_wrong(struct scene *s)
{
	struct shot *x = &s->far->shot[film_find(s->far, s->far_mid, DATA)];

	x->data[x->len - 1] ^= 1;
}

static void unseal(struct shot *x)
{
	struct frame f = shot_view(x);

	icrc_fill(x->data, &f);
}

static void a_request_without_seal(struct scene *s)
{
	unseal(&s->near_wan->shot[film_find(s->near_wan, s->near_wan->n * 6 / 10, DATA)]);
}

static void an_answer_without_seal(struct scene *s)
{
	unseal(&s->near_wan->shot[film_find(s->near_wan, s->near_wan->n * 6 / 10, ANSWER)]);
}

static void an_answer_is_missing(struct scene *s)
{
	film_cut(s->near, film_find(s->near, s->near_mid, ANSWER));
}

static void an_answer_is_short(struct scene *s)
{
	struct shot *x = &s->near->shot[film_find(s->near, s->near_mid, ANSWER)];
	struct frame f = shot_view(x);

	x->data[f.bth] = OP_READ_RESPONSE_ONLY;
	x->data[f.bth + 1] = (uint8_t)(x->data[f.bth + 1] & ~0x30);
	f = shot_view(x);
	icrc_fill(x->data, &f);
}

static void a_request_altered(struct scene *s)
{
	shot_alter(&s->far->shot[film_find(s->far, s->far_mid, DATA)]);
}

static void an_answer_altered(struct scene *s)
{
	shot_alter(&s->near->shot[film_find(s->near, s->near_mid, ANSWER)]);
}

static void a_request_invented(struct scene *s)
{
	struct shot *x = NULL;
	uint32_t end = 0;

	for (uint32_t i = 0; i < s->far->n; i++) {
		struct frame f = shot_view(&s->far->shot[i]);

		if (!(f.op->flags & OPF_REQUEST))
			continue;
		end = psn_add(f.psn, frame_span(&f, 1024));
		if (f.opcode == OP_WRITE_ONLY)
			x = &s->far->shot[i];
	}
	assert_non_null(x);
	x = add(s->far, x, s->far->shot[s->far->n - 1].t + MS);
	shot_renumber(x, end, KEEP_IT, KEEP_IT);
}

static void an_msn_too_high(struct scene *s)
{
	struct shot *x = &s->near->shot[film_find(s->near, s->near_mid, ACK)];
	struct frame f = shot_view(x);

	shot_renumber(x, KEEP_IT, frame_aeth_msn(&f) + 3, KEEP_IT);
}

static void an_msn_too_low(struct scene *s)
{
	struct shot *x = &s->near->shot[film_find(s->near, s->near_mid, ACK)];
	struct frame f = shot_view(x);

	shot_renumber(x, KEEP_IT, frame_aeth_msn(&f) - 1, KEEP_IT);
}

static void a_request_is_missing(struct scene *s)
{
	film_cut(s->far, film_find(s->far, s->far_mid, MIDDLE));
}

static void the_rest_is_lost(struct scene *s)
{
	while (s->far->n > s->far_mid)
		film_cut(s->far, s->far->n - 1);
}

static void a_middle_for_a_last(struct scene *s)
{
	struct shot *x = &s->near->shot[film_find(s->near, s->near_mid, MIDDLE)];
	struct frame f = shot_view(x);

	x->data[f.bth] = OP_WRITE_LAST;
	f = shot_view(x);
	icrc_fill(x->data, &f);
}

static void a_psn_for_something_else(struct scene *s)
{
	uint32_t i = film_find(s->near, s->near_mid, DATA), k = film_find(s->near, i + 1, DATA);
	uint32_t psn = shot_view(&s->near->shot[i]).psn;

	shot_renumber(add(s->near, &s->near->shot[k], s->near->shot[k].t), psn, KEEP_IT, KEEP_IT);
}

const struct plant plants[] = {
	{"a pseudo-ACK before its data", an_early_ack, RULE_EARLY, true, true},
	{"a pseudo-ACK past an unanswered READ", an_ack_past_a_read, RULE_EARLY, false, true},
	{"a pseudo-ACK with the PSN of a READ", an_ack_of_a_read, RULE_EARLY, false, true},
	{"a true ACK leaks", a_true_ack_leaks, RULE_LEAK, false, true},
	{"an old ACK from nowhere", an_ack_out_of_nowhere, RULE_LEAK, false, true},
	{"a sequence NAK leaks", a_nak_leaks, RULE_LEAK, false, true},
	{"a sequence NAK below the frontier", a_nak_of_its_own, RULE_LEAK, false, true},
	{"an RNR NAK leaks", an_rnr_nak_leaks, RULE_LEAK, false, true},
	{"a request doubled at once", a_request_twice, RULE_DOUBLE, false, true},
	{"a request again after its ACK", a_request_after_its_ack, RULE_DOUBLE, false, true},
	{"a READ again after its answer", a_read_after_its_answer, RULE_DOUBLE, false, true},
	{"a damaged request on the near LAN", damage_near, RULE_ICRC, true, true},
	{"a damaged ACK on the far LAN", damage_far, RULE_ICRC, false, true},
	{"a wrong ICRC on the far LAN", an_icrc_is_wrong, RULE_ICRC, false, true},
	{"a request without a seal on the WAN", a_request_without_seal, RULE_ICRC, false, false},
	{"an answer without a seal on the WAN", an_answer_without_seal, RULE_ICRC, false, false},
	{"a missing READ response", an_answer_is_missing, RULE_READ, true, true},
	{"a READ response out of place", an_answer_is_short, RULE_READ, true, true},
	{"a request altered on its way", a_request_altered, RULE_BYTES, false, true},
	{"an answer altered on its way", an_answer_altered, RULE_BYTES, false, true},
	{"a request that nobody sent", a_request_invented, RULE_BYTES, false, true},
	{"an MSN too high", an_msn_too_high, RULE_MSN, true, true},
	{"an MSN too low", an_msn_too_low, RULE_MSN, true, true},
	{"a request that never arrives", a_request_is_missing, RULE_PSN, false, true},
	{"all is lost from somewhere on", the_rest_is_lost, RULE_LOST, false, true},
	{"a message with a LAST in its middle", a_middle_for_a_last, RULE_SEQUENCE, true, true},
	{"a PSN used twice", a_psn_for_something_else, RULE_PSN, true, true},
};
const unsigned int nplants = sizeof(plants) / sizeof(plants[0]);
