// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The tool: values to text, tables, details and JSON, and rates between two looks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/filter.h"
#include "cli/rates.h"
#include "cli/render.h"

static struct rates look(struct rates r, double at, const char *object)
{
	json_t *o = json_loads(object, 0, NULL);

	assert_non_null(o);
	rates_begin(&r, at);
	rates_add(&r, o);
	json_decref(o);
	return r;
}

static json_t *member(struct rates *r, const char *name, const char *key)
{
	return json_object_get(json_object_get(r->now, name), key);
}

static void test_rates(void **state)
{
	struct rates r = {.object = object_find("qp")};

	(void)state;
	r = look(r, 10,
		 "{\"id\":3,\"out-bytes\":1000,\"in-bytes\":500,\"out-msn\":16777214,"
		 "\"in-msn\":4,\"rtt-us\":50000}");
	assert_null(member(&r, "3", "out-rate"));
	/* half a second later; the MSN has gone round */
	r = look(r, 10.5,
		 "{\"id\":3,\"out-bytes\":2000,\"in-bytes\":500,\"out-msn\":98,"
		 "\"in-msn\":4,\"rtt-us\":50000}");
	assert_int_equal(json_integer_value(member(&r, "3", "out-rate")), 16000);
	assert_int_equal(json_integer_value(member(&r, "3", "in-rate")), 0);
	assert_int_equal(json_integer_value(member(&r, "3", "rate")), 16000);
	assert_int_equal(json_integer_value(member(&r, "3", "message-rate")), 200);
	assert_true(json_real_value(member(&r, "3", "gain")) == 10.0);
	/* another connection under the same id: it counts from 0 */
	r = look(r, 11, "{\"id\":3,\"out-bytes\":10,\"in-bytes\":900,\"out-msn\":5}");
	assert_null(member(&r, "3", "out-rate"));
	assert_null(member(&r, "3", "message-rate"));
	rates_end(&r);
}

static void check_text(enum column_format f, long long v, const char *expected)
{
	const struct column c = {"k", "K", f, COL_TABLE};
	char buf[COLUMN_TEXT];
	json_t *j = json_integer(v);

	assert_string_equal(column_text(&c, j, buf), expected);
	json_decref(j);
}

static void test_values(void **state)
{
	char buf[COLUMN_TEXT];

	(void)state;
	check_text(COL_NUMBER, 1234567, "1234567");
	check_text(COL_HEX, 17, "0x11");
	check_text(COL_HEX, 0, "0x0");
	check_text(COL_BYTES, 0, "0");
	check_text(COL_BYTES, 1023, "1023B");
	check_text(COL_BYTES, 1024, "1.0K");
	check_text(COL_BYTES, 64 << 20, "64.0M");
	check_text(COL_BYTES, 1ll << 40, "1.0T");
	check_text(COL_BYTES, 500ll << 40, "500T");
	check_text(COL_MS, 0, "0");
	check_text(COL_MS, 12, "12ms");
	check_text(COL_MS, 1500, "1.5s");
	check_text(COL_MS, 61000, "1m01s");
	check_text(COL_MS, 3600 * 1000, "1h00m");
	check_text(COL_MS, 86400 * 1000 * 3ll, "3d00h");
	check_text(COL_US, 50, "50us");
	check_text(COL_US, 50123, "50.1ms");
	check_text(COL_PPM, 0, "0");
	check_text(COL_PPM, 99, "<0.01%");
	check_text(COL_PPM, 5400, "0.54%");
	check_text(COL_PPM, 250000, "25%");
	assert_string_equal(column_text(NULL, json_null(), buf), "-");
	assert_string_equal(column_text(NULL, NULL, buf), "-");
	assert_string_equal(column_text(NULL, json_true(), buf), "yes");
}

/* Every listed key once. */
static void test_columns(void **state)
{
	(void)state;
	for (const struct object *o = objects; o->name; o++) {
		assert_ptr_equal(object_find(o->name), o);
		for (const struct column *c = o->columns; c->key; c++) {
			assert_ptr_equal(column_find(o, c->key), c);
			if (c->place != COL_DETAIL)
				assert_non_null(c->head);
		}
	}
}

/* @rows (JSON array) rendered; a string that the caller frees. */
static char *rendered(const struct object *o, enum render_mode mode, const char *rows)
{
	json_t *all = json_loads(rows, 0, NULL), *row;
	char *text = NULL;
	size_t len, i;
	FILE *f = open_memstream(&text, &len);
	struct render *r = render_begin(o, mode, f);

	assert_non_null(all);
	assert_non_null(r);
	json_array_foreach (all, i, row)
		render_add(r, row);
	assert_int_equal(render_end(r), 0);
	fclose(f);
	json_decref(all);
	return text;
}

static void check_rendered(const struct object *o, enum render_mode mode, const char *rows,
			   const char *expected)
{
	char *text = rendered(o, mode, rows);

	assert_string_equal(text, expected);
	free(text);
}

static const struct column fruit_columns[] = {
	{"name", "NAME", COL_TEXT, COL_TABLE},
	{"bytes", "BYTES", COL_BYTES, COL_TABLE},
	{"note", "NOTE", COL_TEXT, COL_PRESENT},
	{"id", NULL, COL_HEX, COL_DETAIL},
	{NULL, NULL, 0, 0},
};
static const struct object fruit = {"fruit", "", fruit_columns, false, NULL, false};
static const struct object idle_fruit = {"fruit", "", fruit_columns, true, "bytes", false};

#define ROWS                                                                                       \
	"[{\"name\":\"fig\",\"bytes\":0,\"id\":1},{\"name\":\"p\xc3\xa4r\",\"bytes\":2048,\"id\":" \
	"2,\"more\":true}]"

static void check_layout(const struct object *o, enum render_mode mode, int fit,
			 const char *columns, const char *rows, const char *expected)
{
	const struct column *chosen[3];
	json_t *all = json_loads(rows, 0, NULL), *row;
	char *text = NULL, err[256];
	size_t len, i;
	FILE *f = open_memstream(&text, &len);
	struct render *r = render_begin(o, mode, f);

	assert_non_null(r);
	assert_int_equal(filter_columns(o, columns, chosen, 2, err, sizeof(err)), 0);
	render_layout(r, fit, chosen[0] ? chosen : NULL);
	json_array_foreach (all, i, row)
		render_add(r, row);
	assert_int_equal(render_end(r), 0);
	fclose(f);
	json_decref(all);
	assert_string_equal(text, expected);
	free(text);
}

/* A narrow terminal: the last text is cut, then columns are left out; and columns to choose. */
static void test_layout(void **state)
{
	static const char long_note[] =
		"[{\"name\":\"fig\",\"bytes\":1,\"note\":\"pärs are not figs at all\"}]";
	const struct column *chosen[3];
	char err[256];

	(void)state;
	check_layout(&fruit, RENDER_TABLE, 60, NULL, long_note,
		     "NAME  BYTES  NOTE\nfig      1B  pärs are not figs at all\n");
	check_layout(&fruit, RENDER_TABLE, 29, NULL, long_note,
		     "NAME  BYTES  NOTE\nfig      1B  pärs are not fi+\n");
	check_layout(&fruit, RENDER_TABLE, 25, NULL, long_note,
		     "NAME  BYTES  NOTE\nfig      1B  pärs are no+\n");
	/* not even so much is left: no note */
	check_layout(&fruit, RENDER_TABLE, 24, NULL, long_note, "NAME  BYTES\nfig      1B\n");
	check_layout(&fruit, RENDER_TABLE, 5, NULL, long_note, "NAME\nfig\n");
	check_layout(&fruit, RENDER_TABLE, 2, NULL, long_note, "N+\nf+\n");
	/* a unit stands once: with the number */
	check_layout(object_find("peer"), RENDER_DETAILS, 0, "heard-ms,srtt-us",
		     "[{\"heard-ms\":7,\"srtt-us\":1234}]", "heard  7ms\nsrtt   1.2ms\n");
	/* chosen: in that order, also what only details have, and all rows */
	check_layout(&idle_fruit, RENDER_TABLE, 0, "id,name", ROWS,
		     " ID  NAME\n0x1  fig\n0x2  p\xc3\xa4r\n");
	check_layout(&fruit, RENDER_JSON, 0, "id,note", ROWS,
		     "[\n{\"id\":1,\"note\":null},\n{\"id\":2,\"note\":null}\n]\n");
	check_layout(&fruit, RENDER_DETAILS, 0, "bytes", ROWS, "bytes  0\n\nbytes  2.0K\n");
	assert_int_equal(filter_columns(&fruit, "name,colour", chosen, 2, err, sizeof(err)), -1);
	assert_string_equal(err, "fruit has no 'colour'; it has name bytes note id");
	assert_int_equal(filter_columns(&fruit, "name,id,name", chosen, 2, err, sizeof(err)), -1);
	assert_string_equal(err, "more than 2 columns");
	assert_int_equal(filter_columns(&fruit, "", chosen, 2, err, sizeof(err)), -1);
	assert_null(chosen[0]);
}

/* What a connection waits for matters more than its figures; names matter most. */
static void test_layout_note(void **state)
{
	static const char row[] =
		"[{\"lan-ip\":\"10.1.0.5\",\"lqpn\":17,\"wan-ip\":\"10.2.0.7\",\"rqpn\":34,"
		"\"state\":\"watch\",\"rate\":0,\"rtt-us\":null,\"custody-bytes\":0,"
		"\"custody-oldest-ms\":0,"
		"\"note\":\"peer refused: it has no rule for this connection\"}]";

	(void)state;
	check_layout(
		object_find("qp"), RENDER_TABLE, 100, NULL, row,
		"LAN-IP    LQPN  WAN-IP    RQPN  STATE  BIT/S  NOTE\n"
		"10.1.0.5  0x11  10.2.0.7  0x22  watch      0  peer refused: it has no rule for "
		"this connection\n");
	check_layout(object_find("qp"), RENDER_TABLE, 80, NULL, row,
		     "LAN-IP    LQPN  WAN-IP    RQPN  STATE  BIT/S  NOTE\n"
		     "10.1.0.5  0x11  10.2.0.7  0x22  watch      0  peer refused: it has no rule "
		     "for +\n");
}

static void test_table(void **state)
{
	(void)state;
	check_rendered(&fruit, RENDER_TABLE, ROWS,
		       "NAME  BYTES\nfig       0\np\xc3\xa4r    2.0K\n");
	check_rendered(&fruit, RENDER_TABLE, "[]", "NAME  BYTES\n");
	check_rendered(&fruit, RENDER_TABLE,
		       "[{\"name\":\"fig\",\"note\":\"why not\"},{\"name\":\"melon\"}]",
		       "NAME   BYTES  NOTE\nfig        -  why not\nmelon      -  -\n");
	/* a row that says nothing is left out, unless all is wanted */
	check_rendered(&idle_fruit, RENDER_TABLE, ROWS, "NAME  BYTES\np\xc3\xa4r    2.0K\n");
	check_rendered(&idle_fruit, RENDER_DETAILS, ROWS,
		       "NAME  BYTES\nfig       0\np\xc3\xa4r    2.0K\n");
	/* nobody writes to the terminal but us */
	check_rendered(&fruit, RENDER_TABLE, "[{\"name\":\"a\\u001b[1mb\",\"bytes\":1}]",
		       "NAME    BYTES\na?[1mb     1B\n");
}

static void test_details(void **state)
{
	(void)state;
	check_rendered(&fruit, RENDER_DETAILS, ROWS,
		       "name   fig\nbytes  0\nid     0x1\n\nname   p\xc3\xa4r\nbytes  2.0K\nid     "
		       "0x2\nmore   yes\n");
}

static void test_json(void **state)
{
	json_t *in = json_loads(ROWS, 0, NULL), *out;
	char *text;

	(void)state;
	for (int pretty = 0; pretty < 2; pretty++) {
		text = rendered(&idle_fruit, pretty ? RENDER_PRETTY : RENDER_JSON, ROWS);
		out = json_loads(text, 0, NULL);
		assert_true(json_equal(in, out));
		json_decref(out);
		free(text);
	}
	check_rendered(&fruit, RENDER_JSON, "[]", "[]\n");
	json_decref(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rates),	cmocka_unit_test(test_values),
		cmocka_unit_test(test_columns), cmocka_unit_test(test_table),
		cmocka_unit_test(test_layout),	cmocka_unit_test(test_layout_note),
		cmocka_unit_test(test_details), cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
