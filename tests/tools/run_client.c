/* SPDX-License-Identifier: MIT */
/*
 * run_client WHAT [LIBRARY]: a D3DKMT program for test_run.py, linked with no library of this
 * project. It prints what it saw, and its exit code is chosen by WHAT.
 */
#include <d3dkmthk.h>

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *library;
static const char *self;

static void *find(const char *name)
{
	void *symbol = dlsym(library, name);

	if (!symbol)
		printf("no %s\n", name);
	return symbol;
}

#define CALL(function, type, args)                    \
	__extension__({                               \
		NTSTATUS(APIENTRY *call)(type *);     \
		void *symbol = find(#function);       \
                                                      \
		memcpy(&call, &symbol, sizeof(call)); \
		call(args);                           \
	})

/* Returns the handle of the first adapter; 0: there is none. */
static D3DKMT_HANDLE enumerate(NTSTATUS *status)
{
	D3DKMT_ADAPTERINFO adapter = {0};
	D3DKMT_ENUMADAPTERS2 list = {.NumAdapters = 1, .pAdapters = &adapter};

	*status = CALL(D3DKMTEnumAdapters2, D3DKMT_ENUMADAPTERS2, &list);
	printf("enumerated: 0x%08x\n", (unsigned)*status);
	fflush(stdout);
	return NT_SUCCESS(*status) && list.NumAdapters ? adapter.hAdapter : 0;
}

/* Two calls that succeed, two that break a rule, one that WDDM 1.x does not support. */
static int make_calls(void)
{
	NTSTATUS status;
	D3DKMT_HANDLE adapter = enumerate(&status);
	D3DKMT_CREATEDEVICE device = {.hAdapter = adapter};
	D3DKMT_LOCK lock = {.hAllocation = 0x1234};
	D3DKMT_CREATEPAGINGQUEUE queue = {0};

	status = CALL(D3DKMTCreateDevice, D3DKMT_CREATEDEVICE, &device);
	printf("device: 0x%08x\n", (unsigned)status);
	lock.hDevice = queue.hDevice = device.hDevice;
	for (int i = 0; i < 2; i++)
		printf("lock: 0x%08x\n", (unsigned)CALL(D3DKMTLock, D3DKMT_LOCK, &lock));
	printf("queue: 0x%08x\n",
	       (unsigned)CALL(D3DKMTCreatePagingQueue, D3DKMT_CREATEPAGINGQUEUE, &queue));
	fflush(stdout);
	return adapter ? 5 : 6;
}

static int await_signal(void)
{
	sigset_t set;
	NTSTATUS status;
	int number = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	(void)enumerate(&status);
	printf("ready\n");
	fflush(stdout);
	do {
		sigwait(&set, &number);
		printf("got %d\n", number);
		fflush(stdout);
	} while (number != SIGTERM);
	(void)enumerate(&status);
	return 9;
}

/* A child that calls after fork(), and one that executes this program. */
static int make_children(void)
{
	NTSTATUS status;
	int code = 0;

	(void)enumerate(&status);
	pid_t child = fork();

	if (child == 0) {
		(void)enumerate(&status);
		_exit(NT_SUCCESS(status) ? 0 : 1);
	}
	waitpid(child, &code, 0);
	printf("child: %d\n", WIFEXITED(code) ? WEXITSTATUS(code) : -1);
	fflush(stdout);
	child = fork();
	if (child == 0) {
		execl(self, self, "calls", (char *)NULL);
		_exit(99);
	}
	waitpid(child, &code, 0);
	(void)enumerate(&status);
	return WIFEXITED(code) ? WEXITSTATUS(code) : 98;
}

static int run(const char *what)
{
	NTSTATUS status = STATUS_SUCCESS;

	if (strcmp(what, "calls") == 0)
		return make_calls();
	if (strcmp(what, "signals") == 0)
		return await_signal();
	if (strcmp(what, "children") == 0)
		return make_children();
	(void)enumerate(&status);
	if (strcmp(what, "_exit") == 0)
		_exit(make_calls());
	if (strcmp(what, "crash") == 0) {
		signal(SIGSEGV, SIG_DFL); /* sanitizers handle it */
		raise(SIGSEGV);
	}
	if (strcmp(what, "close") == 0)
		dlclose(library);
	return NT_SUCCESS(status) ? 7 : 8;
}

int main(int argc, char **argv)
{
	const char *name = argc > 2 ? argv[2] : "libdxcore.so";

	self = argv[0];
	if (argc < 2)
		return 97;
	library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		printf("no library: %s\n", dlerror());
		return 96;
	}
	return run(argv[1]);
}
