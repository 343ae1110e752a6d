// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "tests/lab/model/sealed.h"

#include "engine/core/core.h"

void sealed_by_peer(struct engine *e, uint8_t *data, uint32_t len, bool left, bool own)
{
	const struct flow *fl;
	struct frame f;
	bool response;

	if (frame_parse(data, len, &f) != FRAME_OK || !(f.op->flags & OPF_RC))
		return;
	response = f.op->flags & OPF_RESPONSE;
	fl = flow_find(e, &f);
	if (fl && response)
		fl = fl->partner == FLOW_NONE ? NULL : &e->flows[fl->partner];
	if (fl && (fl->lane.sealed || left))
		put_le32(data + f.icrc, get_le32(data + f.icrc) ^
						seal_tag(e, &fl->lane, response, wire_psn_of(&f)) ^
						(own ? SEAL_OWN : 0));
}
