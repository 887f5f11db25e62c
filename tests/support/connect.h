/* SPDX-License-Identifier: MIT */
#ifndef VMM_TESTS_SUPPORT_CONNECT_H
#define VMM_TESTS_SUPPORT_CONNECT_H

#include <support/test.h>

#include <sys/socket.h>
#include <vidmm/serve.h>

/* A socket whose other end belongs to the server: a channel of a client in this program. */
static inline int connect_to(struct vidmm_server *server)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(vidmm_server_connect(server, pair[1]), 0);
	return pair[0];
}

#endif
