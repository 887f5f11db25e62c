/* SPDX-License-Identifier: MIT */
#include "pool.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS 100000000

/* pids[i] is 0 before and after the process of piece i. */
struct running {
	const struct pool *pool;
	pid_t *pids;
	unsigned begun, count;
	sigset_t waiting; /* SIGCHLD */
	sigset_t before;  /* the caller's signal mask */
};

static void report(const struct running *running, unsigned index, const struct pool_end *end)
{
	running->pool->ended(running->pool->context, index, end);
}

static void run_child(const struct running *running, pid_t parent, unsigned index)
{
	/* A caller that is killed takes its children with it, also one killed before prctl. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	sigprocmask(SIG_SETMASK, &running->before, NULL);
	running->pool->work(running->pool->context, index);
	_exit(EXIT_SUCCESS);
}

static void begin_next(struct running *running)
{
	unsigned index = running->begun++;
	pid_t parent = getpid(), pid = fork();

	if (pid == 0)
		run_child(running, parent, index);
	if (pid < 0) {
		report(running, index, &(struct pool_end){.error = errno});
		return;
	}
	running->pids[index] = pid;
	running->count++;
}

static void end(struct running *running, pid_t pid, int status)
{
	struct pool_end how = {0};
	unsigned index = 0;

	if (WIFSIGNALED(status))
		how.signal = WTERMSIG(status);
	else
		how.exit_code = WEXITSTATUS(status);
	while (index < running->begun && running->pids[index] != pid)
		index++;
	if (index == running->begun)
		return;
	running->pids[index] = 0;
	running->count--;
	report(running, index, &how);
}

/* Waits until a process ends, or until the next tick. */
static void wait_for_end(struct running *running)
{
	const struct timespec tick = {.tv_nsec = TICK_NS};
	pid_t pid;
	int status;

	if (running->pool->tick)
		sigtimedwait(&running->waiting, NULL, &tick);
	else
		sigwaitinfo(&running->waiting, NULL);
	/* one signal may stand for several ends */
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		end(running, pid, status);
	if (running->pool->tick)
		running->pool->tick(running->pool->context);
}

static void run_all(struct running *running)
{
	const struct pool *pool = running->pool;

	while (running->begun < pool->count || running->count > 0) {
		if (running->begun < pool->count && running->count < pool->jobs)
			begin_next(running);
		else
			wait_for_end(running);
	}
}

void pool_run(const struct pool *pool)
{
	struct running running = {.pool = pool};

	running.pids = calloc(pool->count, sizeof(*running.pids));
	for (unsigned i = 0; i < pool->count && !running.pids; i++)
		report(&running, i, &(struct pool_end){.error = ENOMEM});
	if (!running.pids)
		return;
	/* Where SIGCHLD is ignored, waitpid finds no process that ended. */
	signal(SIGCHLD, SIG_DFL);
	/* Blocked, an end between waitpid and the next wait is not lost. */
	sigemptyset(&running.waiting);
	sigaddset(&running.waiting, SIGCHLD);
	sigprocmask(SIG_BLOCK, &running.waiting, &running.before);
	run_all(&running);
	sigprocmask(SIG_SETMASK, &running.before, NULL);
	free(running.pids);
}
