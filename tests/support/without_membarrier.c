/* SPDX-License-Identifier: MIT */
/*
 * Runs a program for which membarrier(2) fails as on a kernel without it, by a seccomp filter that
 * stays in force in the program.
 *
 *     without_membarrier PROGRAM [ARGUMENT...]
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};

	if (argc < 2)
		return 2;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
		puts("1..0 # SKIP this system has no seccomp filters");
		return 0;
	}
	if (syscall(SYS_membarrier, 0, 0, 0) >= 0 || errno != ENOSYS) {
		fprintf(stderr, "without_membarrier: the system call is still there\n");
		return 1;
	}
	execv(argv[1], argv + 1);
	perror(argv[1]);
	return 1;
}
