/* SPDX-License-Identifier: MIT */
/* The program: its environment, its start, the signals that it gets, its end. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"

/*
 * The signals that `vidmm run` waits for: all that a process may be sent. Left out are those of its
 * own faults, and those that stop it: the terminal stops the whole process group.
 */
static void choose_signals(sigset_t *set)
{
	static const int own[] = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP, SIGABRT,
				  SIGSYS,  SIGPIPE, SIGTSTP, SIGTTIN, SIGTTOU};

	sigfillset(set);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(set, own[i]);
}

static bool set_environment(const struct run_folder *folder)
{
	const char *before = getenv("LD_LIBRARY_PATH");
	char *path = NULL;
	bool good;

	if (asprintf(&path, "%s%s%s", folder->path, before && *before ? ":" : "",
		     before ? before : "") < 0)
		return false;
	good = setenv("LD_LIBRARY_PATH", path, 1) == 0 &&
	       setenv(VMM_REPORT_VARIABLE, folder->report, 1) == 0;
	free(path);
	if (folder->adapter)
		return good && unsetenv("VIDMM_SOCKET") == 0 &&
		       setenv("VIDMM_ADAPTER", folder->adapter, 1) == 0;
	return good && unsetenv("VIDMM_ADAPTER") == 0 &&
	       setenv("VIDMM_SOCKET", folder->socket, 1) == 0;
}

/* What the process of the program needs before it is the program. */
struct preparation {
	const struct run_folder *folder;
	const char *base; /* of the mount namespace; NULL: none */
	struct vmm_report *report;
	sigset_t mask;
};

/* Becomes the program. Returns errno. */
static int execute(char **program, const struct preparation *p)
{
	if (!set_environment(p->folder))
		return ENOMEM;
	if (p->base)
		run_namespace_enter(p->folder, p->base, p->report);
	sigprocmask(SIG_SETMASK, &p->mask, NULL);
	(void)signal(SIGXFSZ, SIG_DFL); /* ignored in vidmm */
	execvp(program[0], program);
	return errno;
}

/*
 * Waits for the end of the program. A signal that a process sent to `vidmm run` is passed on. One
 * that the terminal sent has reached the program already.
 */
static int await(pid_t program, const sigset_t *set)
{
	siginfo_t info;
	int status = 0;

	while (waitpid(program, &status, WNOHANG) != program) {
		int number = sigwaitinfo(set, &info);

		if (number > 0 && number != SIGCHLD && info.si_code != SI_KERNEL)
			kill(program, number);
	}
	return status;
}

bool run_child(const struct run_options *options, const struct run_folder *folder,
	       struct vmm_report *report, struct run_end *end)
{
	struct preparation p = {.folder = folder, .report = report};
	sigset_t set;
	int error[2];

	*end = (struct run_end){0};
	signal(SIGCHLD, SIG_DFL); /* else the kernel would keep no status */
	if (!options->no_namespace)
		p.base = run_namespace_prepare(folder, report);
	if (pipe2(error, O_CLOEXEC)) {
		fprintf(stderr, "vidmm run: no pipe: %s\n", strerror(errno));
		return false;
	}
	choose_signals(&set);
	sigprocmask(SIG_BLOCK, &set, &p.mask);
	pid_t program = fork();

	if (program == 0) {
		int failed = execute(options->program, &p);

		_exit(write(error[1], &failed, sizeof(failed)) == sizeof(failed) ? 0 : 1);
	}
	close(error[1]);
	if (program > 0) {
		/* The end of the pipe is closed by a successful exec. */
		while (read(error[0], &end->exec_error, sizeof(end->exec_error)) < 0 &&
		       errno == EINTR)
			;
		end->status = await(program, &set);
	} else {
		fprintf(stderr, "vidmm run: no process: %s\n", strerror(errno));
	}
	close(error[0]);
	sigprocmask(SIG_SETMASK, &p.mask, NULL);
	return program > 0;
}

int run_exit_code(const struct run_end *end)
{
	if (end->exec_error)
		return end->exec_error == ENOENT ? RUN_NOT_FOUND : RUN_NOT_EXECUTABLE;
	return WIFSIGNALED(end->status) ? RUN_SIGNAL + WTERMSIG(end->status)
					: WEXITSTATUS(end->status);
}
