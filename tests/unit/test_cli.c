// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The tool: words to commands, filters, values to text, tables and JSON, and its talk with the
 * daemon.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/client.h"
#include "cli/command.h"
#include "cli/complete.h"
#include "cli/filter.h"
#include "cli/rates.h"
#include "cli/render.h"
#include "control/control.h"
#include "peer/key.h"
#include "tests/unit/control_data.h"
#include "tests/unit/temp_dir.h"

#define WORDS(...) ((char *[]){__VA_ARGS__, NULL})

/* Find the command of @words; "qp/2" is object qp named by two words, "!" an error with @err
 * filled. */
static const char *found(char **words, char *err, size_t errlen)
{
	static char buf[64];
	const struct command *c;
	int n = 0, used;

	while (words[n])
		n++;
	c = command_find(n, words, &used, err, errlen);
	if (!c)
		return "!";
	snprintf(buf, sizeof(buf), "%s/%d", c->object ? c->object->name : c->name, used);
	return buf;
}

static void test_words(void **state)
{
	char err[256];

	(void)state;
	assert_string_equal(found(WORDS("qp"), err, sizeof(err)), "qp/1");
	assert_string_equal(found(WORDS("qp", "show"), err, sizeof(err)), "qp/2");
	assert_string_equal(found(WORDS("q", "s"), err, sizeof(err)), "qp/2");
	assert_string_equal(found(WORDS("l"), err, sizeof(err)), "lane/1");
	assert_string_equal(found(WORDS("pee", "sho"), err, sizeof(err)), "peer/2");
	assert_string_equal(found(WORDS("ru"), err, sizeof(err)), "rule/1");
	assert_string_equal(found(WORDS("stats"), err, sizeof(err)), "stats/1");
	assert_string_equal(found(WORDS("statu"), err, sizeof(err)), "status/1");
	assert_string_equal(found(WORDS("stat"), err, sizeof(err)), "!");
	assert_string_equal(err, "'stat' may mean stats or status; write more of it");
	assert_string_equal(found(WORDS("k", "show"), err, sizeof(err)), "keygen/1");
	assert_string_equal(found(WORDS("help"), err, sizeof(err)), "help/1");
	/* a filter's first word is no verb */
	assert_string_equal(found(WORDS("qp", "lan-ip", "10.0.0.1"), err, sizeof(err)), "qp/1");
	assert_string_equal(found(WORDS("qp", ""), err, sizeof(err)), "qp/1");

	assert_string_equal(found(WORDS("x"), err, sizeof(err)), "!");
	assert_string_equal(
		err, "unknown object 'x'; there are qp, lane, peer, rule, stats, status, top, "
		     "monitor, release, bypass, reload, clear, capture, bundle, keygen, help");
	assert_string_equal(found(WORDS(""), err, sizeof(err)), "!");
	assert_string_equal(found(WORDS("qps"), err, sizeof(err)), "!");
}

/* What stands in help and completion is the table; every object is there. */
static void test_help_and_completion(void **state)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	command_help(f);
	fflush(f);
	for (const struct object *o = objects; o->name; o++) {
		assert_non_null(strstr(text, o->name));
		assert_non_null(strstr(text, o->help));
	}
	assert_null(strstr(text, "complete"));
	rewind(f);
	command_complete(0, NULL, f);
	fputc('\0', f);
	fflush(f);
	assert_string_equal(text,
			    "qp\nlane\npeer\nrule\nstats\nstatus\ntop\nmonitor\nrelease\nbypass\n"
			    "reload\nclear\ncapture\nbundle\nkeygen\nhelp\n");
	rewind(f);
	command_complete(1, WORDS("stats"), f);
	fputc('\0', f);
	fflush(f);
	assert_string_equal(text, "show\ngroup\nname\nvalue\nper-second\nhelp\n");
	rewind(f);
	command_complete(3, WORDS("stats", "show", "group"), f);
	fputc('\0', f);
	fflush(f);
	assert_string_equal(text, "");
	rewind(f);
	command_complete(2, WORDS("lane", "direction"), f);
	fputc('\0', f);
	fflush(f);
	assert_string_equal(text, "out\nin\n");
	rewind(f);
	command_complete(1, WORDS("bypass"), f);
	fputc('\0', f);
	fflush(f);
	assert_string_equal(text, "on\noff\n");
	rewind(f);
	command_complete(2, WORDS("bypass", "on"), f);
	fputc('\0', f);
	fflush(f);
	assert_int_equal(strncmp(text, "all\nlan-ip\n", 11), 0);
	rewind(f);
	command_complete(3, WORDS("capture", "x.pcapng", "state"), f);
	fputc('\0', f);
	fflush(f);
	assert_string_equal(text, "watch\nopening\nheld\ndrain\nfault\n");
	fclose(f);
	free(text);
}

static bool matches(const char *object, const char *key, const char *value)
{
	json_t *o = json_loads(object, 0, NULL);
	struct filter f;
	char err[512];
	bool yes;

	assert_non_null(o);
	assert_int_equal(filter_parse(object_find("qp"), 2, WORDS((char *)key, (char *)value), &f,
				      err, sizeof(err)),
			 0);
	yes = filter_match(&f, o);
	json_decref(o);
	return yes;
}

static void test_filter(void **state)
{
	static const char qp[] = "{\"lan-ip\":\"10.1.0.5\",\"wan-ip\":\"2001:db8::7\",\"lqpn\":17,"
				 "\"vlan\":null,\"state\":\"held\"}";
	struct filter f;
	char err[1024];
	json_t *o;

	(void)state;
	assert_true(matches(qp, "lan-ip", "10.1.0.5"));
	assert_false(matches(qp, "lan-ip", "10.1.0.50"));
	assert_true(matches(qp, "wan", "2001:DB8:0::7"));
	assert_true(matches(qp, "lqpn", "17"));
	assert_true(matches(qp, "lq", "0x11"));
	assert_true(matches(qp, "lan-ip", "10.1.0.0/16"));
	assert_true(matches(qp, "lan-ip", "10.1.0.4/31"));
	assert_false(matches(qp, "lan-ip", "10.1.0.6/31"));
	assert_true(matches(qp, "wan-ip", "2001:db8::/33"));
	assert_false(matches(qp, "wan-ip", "10.0.0.0/0"));
	assert_true(matches(qp, "wan-ip", "::/0"));
	assert_true(matches(qp, "vlan", "-"));
	assert_true(matches(qp, "note", "-"));
	assert_false(matches(qp, "state", "-"));
	assert_true(matches(qp, "state", "held"));

	o = json_loads(qp, 0, NULL);
	assert_int_equal(filter_parse(object_find("qp"), 4, WORDS("state", "held", "lqpn", "18"),
				      &f, err, sizeof(err)),
			 0);
	assert_false(filter_match(&f, o));
	assert_int_equal(filter_parse(object_find("qp"), 0, NULL, &f, err, sizeof(err)), 0);
	assert_true(filter_match(&f, o));
	json_decref(o);

	assert_int_equal(filter_parse(object_find("qp"), 1, WORDS("state"), &f, err, sizeof(err)),
			 -1);
	assert_string_equal(err, "no value after 'state'; write KEY VALUE");
	/* a name alone, before pairs; what may be a key is none */
	assert_int_equal(
		filter_parse(object_find("peer"), 1, WORDS("edge-b"), &f, err, sizeof(err)), 0);
	assert_int_equal(f.n, 1);
	assert_string_equal(f.pair[0].key, "name");
	assert_string_equal(f.pair[0].value, "edge-b");
	assert_int_equal(filter_parse(object_find("rule"), 3, WORDS("storage", "policy", "early"),
				      &f, err, sizeof(err)),
			 0);
	assert_int_equal(f.n, 2);
	assert_string_equal(f.pair[1].key, "policy");
	assert_int_equal(filter_parse(object_find("peer"), 1, WORDS("state"), &f, err, sizeof(err)),
			 -1);
	assert_string_equal(err, "no value after 'state'; write KEY VALUE");
	assert_int_equal(filter_parse(object_find("qp"), 1, WORDS("edge-b"), &f, err, sizeof(err)),
			 -1);
	assert_int_equal(
		filter_parse(object_find("peer"), 2, WORDS("edge-b", "up"), &f, err, sizeof(err)),
		-1);
	assert_int_equal(
		filter_parse(object_find("qp"), 2, WORDS("foo", "1"), &f, err, sizeof(err)), -1);
	assert_non_null(strstr(err, "qp has no 'foo'; it has lan-ip lqpn"));
	assert_int_equal(filter_parse(object_find("qp"), 2, WORDS("p", "1"), &f, err, sizeof(err)),
			 -1);
	assert_string_equal(err, "'p' may mean policy or peer; write more of it");
}

/* A value that no row can have is an error, not an empty table. */
static void test_filter_values(void **state)
{
	static const struct {
		const char *object, *key, *value, *error;
	} bad[] = {
		{"qp", "lqpn", "17x",
		 "lqpn is a number, decimal or hexadecimal with 0x, not '17x'"},
		{"qp", "lqpn", "", "lqpn is a number"},
		{"qp", "lan-ip", "10.1.0", "lan-ip is an address or a prefix"},
		{"qp", "lan-ip", "10.1.0.0/33", "lan-ip is an address or a prefix"},
		{"qp", "lan-ip", "10.1.0.0/-1", "lan-ip is an address or a prefix"},
		{"qp", "wan-ip", "2001:db8::/129", "wan-ip is an address or a prefix"},
		{"qp", "state", "helt",
		 "state is one of: watch opening held drain fault; not 'helt'"},
		{"qp", "state", "", "state is one of"},
		{"qp", "policy", "fast", "policy is one of: early honest off"},
		{"rule", "class", "fast", "class is one of: control data bulk"},
		{"lane", "direction", "up", "direction is one of: out in"},
		{"peer", "state", "gone", "state is one of: down up closed"},
		{"status", "level", "bad", "level is one of: warning critical"},
		{"stats", "value", "many", "value is a number"},
	};
	struct filter f;
	char err[512];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(filter_parse(object_find(bad[i].object), 2,
					      WORDS((char *)bad[i].key, (char *)bad[i].value), &f,
					      err, sizeof(err)),
				 -1);
		if (!strstr(err, bad[i].error))
			fail_msg("expected \"%s\" in \"%s\"", bad[i].error, err);
	}
	assert_int_equal(
		filter_parse(object_find("qp"), 2, WORDS("vlan", "-"), &f, err, sizeof(err)), 0);
}

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
static const struct object fruit = {"fruit", "", fruit_columns, false, NULL};
static const struct object idle_fruit = {"fruit", "", fruit_columns, true, "bytes"};

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
	assert_int_equal(filter_columns(&fruit, "", chosen, 2, err, sizeof(err)), 0);
	assert_null(chosen[0]);
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

/* ---- with a daemon at the other end ---- */

struct server {
	pthread_t thread;
	int stop; /* eventfd */
	char path[64];
	struct control *ctl;
	struct view_source src;
	struct rule rules[2];
};

static void *serve(void *arg)
{
	struct server *s = arg;
	struct pollfd p[2] = {{.fd = control_fd(s->ctl), .events = POLLIN},
			      {.fd = s->stop, .events = POLLIN}};

	for (;;) {
		poll(p, 2, -1);
		if (p[1].revents)
			return NULL;
		control_service(s->ctl, TEST_NOW);
	}
}

static void server_start(struct server *s)
{
	char err[256];

	memset(s, 0, sizeof(*s));
	snprintf(s->path, sizeof(s->path), "%s/sock", dir);
	control_data_open(&s->src, s->rules);
	s->ctl = control_open(s->path, &s->src, err, sizeof(err));
	assert_non_null(s->ctl);
	s->stop = eventfd(0, 0);
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void server_stop(struct server *s)
{
	assert_int_equal(eventfd_write(s->stop, 1), 0);
	pthread_join(s->thread, NULL);
	close(s->stop);
	control_close(s->ctl);
	engine_destroy(s->src.engine);
}

static void collect(void *ctx, json_t *o)
{
	json_array_append(ctx, o);
}

static void test_request(void **state)
{
	json_t *all = json_array(), *big = json_array();
	struct server s;
	char err[256] = "";

	(void)state;
	server_start(&s);
	assert_int_equal(client_request(s.path, "qp-show", collect, all, err, sizeof(err)), 0);
	assert_int_equal(json_array_size(all), 2);
	assert_int_equal(client_request(s.path, "nonsense", collect, all, err, sizeof(err)), -1);
	assert_string_equal(
		err, "longhauld: unknown cmd 'nonsense'; tool and daemon may differ in version");
	server_stop(&s);

	server_start(&s);
	control_data_halves(s.src.engine, 2000);
	assert_int_equal(client_request(s.path, "qp-show", collect, big, err, sizeof(err)), 0);
	assert_int_equal(json_array_size(big), 2002);
	server_stop(&s);
	json_decref(all);
	json_decref(big);
}

static void check_values(const char *socket, int n, char **words, const char *expected)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	complete_values(socket, n, words, f);
	fclose(f);
	assert_string_equal(text, expected);
	free(text);
}

/* Behind a key the shell is offered what there is now. */
static void test_complete_values(void **state)
{
	struct server s;

	(void)state;
	server_start(&s);
	check_values(s.path, 2, WORDS("rule", "name"), "storage\nidle\n");
	check_values(s.path, 3, WORDS("rule", "show", "name"), "storage\nidle\n");
	check_values(s.path, 4, WORDS("rule", "name", "idle", "name"), "idle\n");
	/* a key is what comes next, or nothing that is known */
	check_values(s.path, 1, WORDS("rule"), "storage\nidle\n");
	check_values(s.path, 2, WORDS("rule", "show"), "storage\nidle\n");
	check_values(s.path, 2, WORDS("rule", "idle"), "");
	check_values(s.path, 3, WORDS("rule", "idle", "name"), "idle\n");
	check_values(s.path, 1, WORDS("qp"), "");
	check_values(s.path, 3, WORDS("rule", "name", "idle"), "");
	check_values(s.path, 2, WORDS("rule", "colour"), "");
	check_values(s.path, 0, WORDS(NULL), "");
	server_stop(&s);
	check_values(s.path, 2, WORDS("rule", "name"), "");
}

/* What the daemon tells of lanes and rules has a format, and may be selected by. */
static void test_members_known(void **state)
{
	static const char *const shown[] = {"qp", "lane", "rule"};
	char cmd[32], err[256] = "";
	const char *key;
	struct server s;
	json_t *all, *v;

	(void)state;
	server_start(&s);
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		all = json_array();
		snprintf(cmd, sizeof(cmd), "%s-show", shown[i]);
		assert_int_equal(client_request(s.path, cmd, collect, all, err, sizeof(err)), 0);
		assert_true(json_array_size(all) > 0);
		json_object_foreach (json_array_get(all, 0), key, v)
			if (!column_find(object_find(shown[i]), key))
				fail_msg("%s: '%s' is not known to the tool", shown[i], key);
		json_decref(all);
	}
	server_stop(&s);
}

static void test_no_daemon(void **state)
{
	char path[64], err[256], expected[256];

	(void)state;
	snprintf(path, sizeof(path), "%s/none", dir);
	assert_int_equal(client_request(path, "qp-show", collect, NULL, err, sizeof(err)), -1);
	snprintf(expected, sizeof(expected),
		 "cannot reach longhauld at %s: No such file or directory (is it running? "
		 "systemctl start longhauld)",
		 path);
	assert_string_equal(err, expected);
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(
		client_request("/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
			       "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
			       "qp-show", collect, NULL, err, sizeof(err)),
		-1);
	assert_non_null(strstr(err, "give a shorter one with -s"));
}

/* A peer that is no longhauld: whatever it says, one line explains. */
static const char *strange_answer;
static void *strange(void *arg)
{
	int fd = accept(*(int *)arg, NULL, NULL);
	char buf[256];

	if (fd < 0 || recv(fd, buf, sizeof(buf), 0) < 0 ||
	    send(fd, strange_answer, strlen(strange_answer), MSG_NOSIGNAL) < 0)
		return NULL;
	close(fd);
	return NULL;
}

static void test_strange_answers(void **state)
{
	static const struct {
		const char *answer, *error;
	} cases[] = {
		{"", "went away in the middle"},
		{"{\"a\":1}\n", "went away in the middle"},
		{"{\"a\":", "no JSON object"},
		{"HTTP/1.1 400\n", "no JSON object"},
		{"[]\n", "no JSON object"},
		{"{\"error\":\"too many clients; try again\"}\n", "longhauld: too many clients"},
	};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	char err[256];
	json_t *all = json_array();
	pthread_t thread;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)state;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/strange", dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 4), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		strange_answer = cases[i].answer;
		assert_int_equal(pthread_create(&thread, NULL, strange, &fd), 0);
		assert_int_equal(
			client_request(addr.sun_path, "qp-show", collect, all, err, sizeof(err)),
			-1);
		if (!strstr(err, cases[i].error))
			fail_msg("expected \"%s\", got \"%s\"", cases[i].error, err);
		pthread_join(thread, NULL);
	}
	close(fd);
	unlink(addr.sun_path);
	json_decref(all);
}

/* A daemon with three connections, the second of which goes as soon as it has shown it. */
static char forgetful_heard[1024];
static void *forgetful(void *arg)
{
	char req[256];
	ssize_t n;
	int fd;

	for (; (fd = accept(*(int *)arg, NULL, NULL)) >= 0; close(fd)) {
		size_t used = strlen(forgetful_heard);

		n = recv(fd, req, sizeof(req) - 1, 0);
		if (n <= 0)
			continue;
		req[n] = '\0';
		snprintf(forgetful_heard + used, sizeof(forgetful_heard) - used, "%s", req);
		if (strstr(req, "qp-show"))
			for (int id = 1; id <= 3; id++)
				dprintf(fd, "{\"id\":%d,\"lqpn\":5,\"rqpn\":6}\n", id);
		else if (strstr(req, "\"id\":2"))
			dprintf(fd, "{\"released\":false,\"bypassed\":false,\"gone\":true}\n");
		else
			dprintf(fd, "{\"released\":true,\"bypassed\":true}\n");
		dprintf(fd, "{\"end\":true}\n");
	}
	return NULL;
}

/* What one command prints while it talks with that daemon. */
static void check_forgetful(const struct options *opt, int fd, command_fn run, int n, char **words,
			    const char *expected)
{
	FILE *out = tmpfile();
	int keep = dup(STDOUT_FILENO);
	pthread_t thread;
	char text[256];
	size_t len;

	assert_non_null(out);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(pthread_create(&thread, NULL, forgetful, &fd), 0);
	fflush(stdout);
	assert_true(dup2(fileno(out), STDOUT_FILENO) >= 0);
	n = run(NULL, opt, n, words);
	fflush(stdout);
	assert_true(dup2(keep, STDOUT_FILENO) >= 0);
	shutdown(fd, SHUT_RDWR);
	pthread_join(thread, NULL);
	rewind(out);
	len = fread(text, 1, sizeof(text) - 1, out);
	text[len] = '\0';
	fclose(out);
	close(keep);
	assert_int_equal(n, 0);
	assert_string_equal(text, expected);
}

/* Of many connections one is gone: what was asked for is done to all others. */
static void test_some_gone(void **state)
{
	const struct {
		command_fn run;
		int n;
		char **words;
		const char *said;
	} cases[] = {
		{run_release, 1, WORDS("all"),
		 "2 connections are delivered what they are owed, then released; they are held "
		 "again with later requests\n1 connection was gone meanwhile\n"},
		{run_bypass, 3, WORDS("on", "lqpn", "5"),
		 "bypass is on for 2 connections\n1 connection was gone meanwhile\n"},
	};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct options opt = {.socket = addr.sun_path};

	(void)state;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/forgetful", dir);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);

		assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
		forgetful_heard[0] = '\0';
		check_forgetful(&opt, fd, cases[i].run, cases[i].n, cases[i].words, cases[i].said);
		assert_non_null(strstr(forgetful_heard, "\"id\":3")); /* the last one, too */
		close(fd);
		unlink(addr.sun_path);
	}
}

static void test_keygen(void **state)
{
	uint8_t key[PEER_KEY_LEN], again[PEER_KEY_LEN];
	struct options opt = {0};
	char path[64], err[256];
	struct stat st;

	(void)state;
	snprintf(path, sizeof(path), "%s/key", dir);
	assert_int_equal(run_keygen(NULL, &opt, 1, WORDS(path)), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(key_read(path, key, err, sizeof(err)), 0);
	/* never overwritten */
	assert_int_equal(run_keygen(NULL, &opt, 1, WORDS(path)), 1);
	assert_int_equal(key_read(path, again, err, sizeof(err)), 0);
	assert_memory_equal(key, again, sizeof(key));
	unlink(path);
	assert_int_equal(run_keygen(NULL, &opt, 1, WORDS("/nonexistent/key")), 1);
	assert_int_equal(run_keygen(NULL, &opt, 2, WORDS(path, path)), 1);
	assert_int_equal(stat(path, &st), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),	      cmocka_unit_test(test_help_and_completion),
		cmocka_unit_test(test_filter),	      cmocka_unit_test(test_filter_values),
		cmocka_unit_test(test_rates),	      cmocka_unit_test(test_values),
		cmocka_unit_test(test_columns),	      cmocka_unit_test(test_table),
		cmocka_unit_test(test_layout),	      cmocka_unit_test(test_details),
		cmocka_unit_test(test_json),	      cmocka_unit_test(test_request),
		cmocka_unit_test(test_no_daemon),     cmocka_unit_test(test_complete_values),
		cmocka_unit_test(test_members_known), cmocka_unit_test(test_strange_answers),
		cmocka_unit_test(test_some_gone),     cmocka_unit_test(test_keygen),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
