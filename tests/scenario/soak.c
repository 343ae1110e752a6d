// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Random worlds, one seed each, until the time is up or the packets are done: `make soak`.
 *
 *	soak [--seconds N] [--packets N] [--seed N] [--runs N] [--jobs N] [--prefetch] [--announce]
 *	     [--attack | --calm] [--paths] [--late] [--queues] [--cores] [--heirs] [--still]
 *	     [--verbose] [--no-shrink] [--first]
 *	soak --script FILE [--verbose] [--trace] [--smaller]
 *
 * Which worlds there are follows from --seed alone; each follows from its own seed (plan.c) or from
 * its script, to the last packet. The jobs are processes that take the worlds in turns, so what
 * each does is the same however fast the other is. Packets are those that hosts sent; each is seen
 * several times on its way. Seconds are CPU seconds of each job, so a busy machine takes longer for
 * the same work. But no world begins after one and a half times as many by the clock, and all ends
 * after twice as many: no finding is made smaller any more, and a world that has not ended is
 * named, and counted as unfinished.
 *
 * --announce: of storage initiators and targets, with announce = auto. --paths: in which packets
 * take another way past one appliance or both (INC_PATH). --late: whose appliances read reports
 * late, or frames (world_late.c). --queues: whose ports have several receive queues
 * (world_queues.c). --still: whose appliances stand still, and do not see that numbers get other
 * owners (world_port.c). --cores: whose appliances have several engines. --attack: with attackers,
 * and network cards of all kinds (actors.h). Without it three worlds in four have them, except with
 * --prefetch, --announce, --paths, --still, --crash and --calm. --crash N: engines are killed at
 * one of N calls or so, at any instruction (world_crash.c); --heirs: who follows may find
 * unreadable what was left (world_heir.c). --smaller: of a script whose world is wrong, print a
 * smaller one. --first: the first violation ends it. A violation prints the world's seed, then a
 * script of a smaller world with the same violation.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/scenario/plan.h"

#define JOBS_MAX       64
#define SHRINK_SECONDS 60
/* Of the seconds of a run, by the clock: when no world begins any more, when it is over. */
#define LATE	       1.5
#define OVER	       2.0
/* What a job has begun ends so much before the job, so that it can be shown. */
#define SHOW_SECONDS   2

struct options {
	double seconds, packets;
	uint64_t seed, runs;
	uint32_t jobs;
	bool prefetch, announce, attack, calm, paths, late, queues, cores, still, smaller, verbose,
		shrink, first, trace;
	const char *script;
	double start;
};

struct sum {
	uint64_t runs, packets, acked, forged, reused, violations, kills, parted, adopted, faulted,
		watched, unread, stillborn, deaths, unfinished, paths, broken, late, waits,
		explained, passed, unseen, excused[EXCUSES];
};

static double now_s(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void count(struct sum *s, const struct plan_result *r)
{
	s->runs++;
	s->packets += r->packets;
	s->acked += r->acked;
	s->forged += r->forged;
	s->reused += r->reused;
	s->paths += r->paths;
	s->broken += r->broken;
	s->late += r->late;
	s->waits += r->waits;
	s->explained += r->explained;
	s->passed += r->passed;
	s->unseen += r->unseen;
	s->violations += r->violation != NULL;
	s->excused[r->excuse] += r->excuse != EXCUSE_NONE;
	s->deaths += r->violation && strstr(r->violation, "queue pair failed");
}

/* Whether a host sees the violation: an error, or no progress. */
static bool loud(const char *violation)
{
	return strstr(violation, "queue pair failed") || strstr(violation, "waits for ever");
}

/* Whether hosts without appliances get @violation, too: then it is not the appliances' fault. */
static bool bare_fails(const struct plan *p, const char *violation)
{
	struct plan bare = *p;
	struct plan_result r;

	bare.appliance0 = bare.appliance1 = 0;
	plan_run(&bare, &r, NULL, NULL);
	return r.violation &&
	       (!strcmp(r.violation, violation) || (loud(r.violation) && loud(violation)));
}

/* How long a violation may be made smaller. */
static double shrink_seconds(const struct options *o)
{
	double left = o->start + OVER * o->seconds - SHOW_SECONDS - now_s(CLOCK_MONOTONIC);

	return o->seconds && left < SHRINK_SECONDS ? left : SHRINK_SECONDS;
}

/* The seed first, then one text at once, so that the jobs' findings do not mix. */
static void show(const struct plan *p, const struct options *o, const struct plan_result *r)
{
	struct plan_result again;
	struct plan small = *p;
	char *text = NULL;
	size_t len = 0;
	FILE *f;

	fprintf(stderr, "soak: seed=%" PRIu64 ": %s\n", p->seed,
		r->violation ? r->violation : "right");
	f = open_memstream(&text, &len);
	if (!f)
		return;
	fprintf(f, "# seed=%" PRIu64 "\n", p->seed);
	if (o->verbose)
		fprintf(f, "# %" PRIu64 " packets, %" PRIu64 " frames, %.3f s\n", r->packets,
			r->frames, (double)r->now / 1e9);
	if (r->violation && o->shrink)
		fprintf(f,
			"# the same after %" PRIu32
			" steps; save it and run: soak --verbose --script FILE\n",
			plan_shrink(&small, r->violation, shrink_seconds(o)));
	plan_print(&small, f);
	if (o->verbose)
		plan_run(&small, &again, f, NULL);
	fclose(f);
	fwrite(text, 1, len, stderr);
	free(text);
	if (r->violation && bare_fails(p, r->violation))
		fprintf(stderr, "# seed=%" PRIu64 ": it goes wrong without appliances, too\n",
			p->seed);
}

/* What all jobs share: whether something was found; the seed of the world that each is in, and what
 * it has counted. */
struct shared {
	volatile int found;
	struct job {
		volatile uint64_t seed;
		volatile bool busy;
		struct sum sum;
	} job[JOBS_MAX];
};

/* Whether the world of @seed has attackers. */
static bool attacked(const struct options *o, uint64_t seed)
{
	if (o->attack)
		return true;
	return !o->calm && !o->paths && !o->still && !o->prefetch && !o->announce &&
	       !world_crash_calls && splitmix64(seed ^ 0x1a77ac4) % 4 != 0;
}

/* Whether its link is one of the field. */
static bool on_a_link(const struct options *o, uint64_t seed)
{
	return !o->prefetch && !o->announce && !o->still && !world_crash_calls &&
	       !attacked(o, seed) && splitmix64(seed ^ 0x11a4) % 3 != 0;
}

/* Whether a job begins one more world, its @i-th; it has used @cpu seconds of a processor. */
static bool goes_on(const struct options *o, const struct sum *s, uint64_t i, double cpu)
{
	if (o->seconds &&
	    (cpu >= o->seconds || now_s(CLOCK_MONOTONIC) - o->start >= LATE * o->seconds))
		return false;
	return (!o->packets || (double)s->packets < o->packets / o->jobs) &&
	       (!o->runs || i < o->runs);
}

/* The @i-th world. Neighbouring start seeds share none. */
static void plan_of(const struct options *o, uint64_t i, struct plan *p)
{
	plan_random(p, i ? splitmix64(o->seed ^ i << 40) : o->seed, o->prefetch);
	if (o->announce)
		plan_announce(p);
	if (attacked(o, p->seed))
		plan_attack(p);
	/* so that an undo also covers the rate that was found */
	p->wan_auto = world_crash_calls && p->seed % 2;
	if (on_a_link(o, p->seed))
		plan_link(p);
	plan_ports(p);
	plan_field(p);
	plan_slow(p);
	if (o->still)
		plan_pauses(p);
	else if (!o->calm)
		plan_still(p);
	if (o->paths)
		plan_paths(p);
	if (o->late)
		plan_late(p);
	if (o->queues)
		plan_queues(p);
	if (o->cores)
		plan_cores(p);
}

static void job(const struct options *o, uint32_t n, struct shared *all)
{
	double start = now_s(CLOCK_PROCESS_CPUTIME_ID);
	struct job *j = &all->job[n];

	for (uint64_t i = n; goes_on(o, &j->sum, i, now_s(CLOCK_PROCESS_CPUTIME_ID) - start) &&
			     !(o->first && all->found);
	     i += o->jobs) {
		struct plan_result r;
		struct plan p;

		plan_of(o, i, &p);
		j->seed = p.seed;
		j->busy = true;
		plan_run(&p, &r, NULL, NULL);
		/* a forger that deceives hosts outside of lanes does so without appliances, too */
		if (r.violation && p.actors.forge && bare_fails(&p, r.violation)) {
			r.violation = NULL;
			r.excuse = EXCUSE_BARE;
		}
		count(&j->sum, &r);
		j->sum.kills = world_kills;
		j->sum.parted = world_parted;
		j->sum.adopted = world_adopted;
		j->sum.faulted = world_faulted;
		j->sum.watched = world_watched;
		j->sum.unread = world_unread;
		j->sum.stillborn = world_stillborn;
		j->busy = false;
		if (r.violation)
			all->found = 1;
		if (r.violation || o->verbose)
			show(&p, o, &r);
	}
}

static void add(struct sum *all, const struct sum *s)
{
	all->runs += s->runs;
	all->packets += s->packets;
	all->acked += s->acked;
	all->forged += s->forged;
	all->reused += s->reused;
	all->paths += s->paths;
	all->broken += s->broken;
	all->late += s->late;
	all->waits += s->waits;
	all->explained += s->explained;
	all->passed += s->passed;
	all->unseen += s->unseen;
	all->violations += s->violations;
	for (int i = 0; i < EXCUSES; i++)
		all->excused[i] += s->excused[i];
	all->kills += s->kills;
	all->parted += s->parted;
	all->adopted += s->adopted;
	all->faulted += s->faulted;
	all->watched += s->watched;
	all->unread += s->unread;
	all->stillborn += s->stillborn;
	all->deaths += s->deaths;
	all->unfinished += s->unfinished;
}

/* Jobs are processes; one that dies is a violation, but not if its timer ended it. */
static struct sum fork_jobs(const struct options *o, struct shared *shared)
{
	struct sum all = {0};
	pid_t pid[JOBS_MAX];

	for (uint32_t n = 0; n < o->jobs; n++) {
		if ((pid[n] = fork()) < 0) {
			perror("soak");
			exit(2);
		}
		if (!pid[n]) {
			if (o->seconds)
				alarm((unsigned int)(OVER * o->seconds) + 1);
			job(o, n, shared);
			_exit(0);
		}
	}
	for (uint32_t n = 0; n < o->jobs; n++) {
		struct job *j = &shared->job[n];
		int status;
		bool late;

		waitpid(pid[n], &status, 0);
		late = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
		if (late && j->busy) {
			fprintf(stderr, "soak: not over in time: seed=%" PRIu64 "\n", j->seed);
			j->sum.unfinished++;
		} else if (status && !late) {
			fprintf(stderr, "soak: seed=%" PRIu64 ": died\n", j->seed);
			j->sum.violations++;
		}
		add(&all, &j->sum);
	}
	return all;
}

static struct sum run_script(const struct options *o)
{
	FILE *f = fopen(o->script, "r");
	struct sum s = {0};
	struct plan_result r;
	struct plan p;
	uint32_t bad;

	if (!f) {
		fprintf(stderr, "soak: %s: %s\n", o->script, strerror(errno));
		exit(2);
	}
	bad = plan_read(&p, f);
	fclose(f);
	if (bad) {
		fprintf(stderr, "soak: %s:%" PRIu32 ": not understood\n", o->script, bad);
		exit(2);
	}
	plan_run(&p, &r, o->verbose ? stderr : NULL, o->trace ? stdout : NULL);
	if (r.violation)
		fprintf(stderr, "soak: %s: %s\n", o->script, r.violation);
	if (r.violation && o->smaller) {
		plan_shrink(&p, r.violation, SHRINK_SECONDS);
		plan_print(&p, stdout);
	}
	count(&s, &r);
	return s;
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {{"seconds", 1, NULL, 's'},
					     {"packets", 1, NULL, 'p'},
					     {"seed", 1, NULL, 'S'},
					     {"runs", 1, NULL, 'r'},
					     {"jobs", 1, NULL, 'j'},
					     {"prefetch", 0, NULL, 'R'},
					     {"verbose", 0, NULL, 'v'},
					     {"no-shrink", 0, NULL, 'n'},
					     {"script", 1, NULL, 'f'},
					     {"first", 0, NULL, '1'},
					     {"trace", 0, NULL, 't'},
					     {"attack", 0, NULL, 'A'},
					     {"smaller", 0, NULL, 'm'},
					     {"crash", 1, NULL, 'c'},
					     {"announce", 0, NULL, 'N'},
					     {"calm", 0, NULL, 'C'},
					     {"paths", 0, NULL, 'P'},
					     {"late", 0, NULL, 'L'},
					     {"cores", 0, NULL, 'M'},
					     {"queues", 0, NULL, 'Q'},
					     {"heirs", 0, NULL, 'H'},
					     {"still", 0, NULL, 'T'},
					     {0}};
	struct options o = {.seed = 1, .shrink = true, .start = now_s(CLOCK_MONOTONIC)};
	struct sum s = {0};
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int c;

	if (shared == MAP_FAILED) {
		perror("soak");
		return 2;
	}
	while ((c = getopt_long(argc, argv, "", opts, NULL)) != -1) {
		switch (c) {
		case 's':
			o.seconds = atof(optarg);
			break;
		case 'p':
			o.packets = atof(optarg);
			break;
		case 'S':
			o.seed = strtoull(optarg, NULL, 0);
			break;
		case 'r':
			o.runs = strtoull(optarg, NULL, 0);
			break;
		case 'j':
			o.jobs = (uint32_t)atoi(optarg);
			break;
		case 'R':
			o.prefetch = true;
			break;
		case 'N':
			o.announce = true;
			break;
		case 'm':
			o.smaller = true;
			break;
		case 'c':
			world_crash_calls = strtoull(optarg, NULL, 0);
			o.shrink = false; /* kills do not repeat themselves */
			break;
		case 'A':
			o.attack = true;
			break;
		case 'C':
			o.calm = true;
			break;
		case 'P':
			o.paths = true;
			break;
		case 'L':
			o.late = true;
			break;
		case 'M':
			o.cores = true;
			break;
		case 'H':
			world_heirs = true;
			break;
		case 'T':
			o.still = true;
			break;
		case 'Q':
			o.queues = true;
			break;
		case 'v':
			o.verbose = true;
			break;
		case 'n':
			o.shrink = false;
			break;
		case 't':
			o.trace = true;
			break;
		case '1':
			o.first = true;
			break;
		case 'f':
			o.script = optarg;
			break;
		default:
			return 2;
		}
	}
	if (!o.seconds && !o.packets && !o.runs)
		o.seconds = 60;
	if (!o.jobs)
		o.jobs = o.runs == 1 ? 1 : (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	if (o.jobs > JOBS_MAX)
		o.jobs = JOBS_MAX;
	if (o.script)
		s = run_script(&o);
	else if (o.jobs > 1 || o.seconds)
		s = fork_jobs(&o, shared);
	else {
		job(&o, 0, shared);
		s = shared->job[0].sum;
	}
	if (o.verbose)
		fprintf(stderr, "soak: %.3g packets/s\n",
			(double)s.packets / (now_s(CLOCK_MONOTONIC) - o.start));
	printf("soak: runs=%" PRIu64 " packets=%" PRIu64 " acked-messages=%" PRIu64
	       " forged=%" PRIu64 " reused=%" PRIu64 " paths=%" PRIu64 " violations=%" PRIu64
	       " invariants=%" PRIu64 " deaths=%" PRIu64 " unfinished=%" PRIu64
	       " excused-luck=%" PRIu64 " excused-bare=%" PRIu64 " excused-reuse=%" PRIu64
	       " excused-path=%" PRIu64 " excused-path-silent=%" PRIu64 " excused-circles=%" PRIu64
	       "\n",
	       s.runs, s.packets, s.acked, s.forged, s.reused, s.paths, s.violations, s.broken,
	       s.deaths, s.unfinished, s.excused[EXCUSE_LUCK], s.excused[EXCUSE_BARE],
	       s.excused[EXCUSE_REUSE], s.excused[EXCUSE_PATH], s.excused[EXCUSE_SILENT],
	       s.excused[EXCUSE_CIRCLES]);
	if (o.late)
		printf("soak-late: late=%" PRIu64 " waits=%" PRIu64 " explained=%" PRIu64 "\n",
		       s.late, s.waits, s.explained);
	if (o.still)
		printf("soak-still: passed=%" PRIu64 " unseen=%" PRIu64 "\n", s.passed, s.unseen);
	if (world_heirs)
		printf("soak-heirs: unread=%" PRIu64 " stillborn=%" PRIu64 "\n", s.unread,
		       s.stillborn);
	if (world_crash_calls)
		printf("soak-crash: kills=%" PRIu64 " between-engines=%" PRIu64 " compared=%" PRIu64
		       " adopted-lanes=%" PRIu64 " faulted-lanes=%" PRIu64 " violations=%" PRIu64
		       "\n",
		       s.kills, s.parted, s.watched, s.adopted, s.faulted, s.violations);
	return s.violations != 0;
}
