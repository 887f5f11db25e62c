/* SPDX-License-Identifier: MIT */
/* The function and the source line of an address: dladdr, and addr2line in a child process. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "code_address.h"

#define LINE_BYTES 512

static size_t put(char *text, size_t size, size_t length, const char *part)
{
	for (; *part && length + 1 < size; part++)
		text[length++] = *part;
	text[length] = '\0';
	return length;
}

static size_t put_hex(char *text, size_t size, size_t length, uint64_t value)
{
	char digits[19];
	size_t at = sizeof(digits) - 1;

	digits[at] = '\0';
	do {
		digits[--at] = "0123456789abcdef"[value & 15];
		value >>= 4;
	} while (value);
	digits[--at] = 'x';
	digits[--at] = '0';
	return put(text, size, length, digits + at);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/*
 * In a child process: becomes addr2line, which writes a line to FD, and one for each caller of
 * inline code.
 */
static void become_addr2line(int fd, const char *object, uint64_t offset)
{
	char number[24];
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	put_hex(number, sizeof(number), 0, offset);
	if (nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(nothing, STDERR_FILENO) >= 0 &&
	    dup2(fd, STDOUT_FILENO) >= 0)
		execlp("addr2line", "addr2line", "-ifCpe", object, number, (char *)NULL);
	_exit(127);
}

/*
 * Keeps the line of the innermost function that is not an inline service of the kernel headers,
 * which a driver's author did not write.
 */
static void keep_line(char *lines)
{
	static const char inlined[] = " (inlined by) ";
	char *line = lines, *end = line + strcspn(line, "\n");
	size_t length;

	while (*end) {
		const char *header = strstr(line, "/ntddk_");

		if (!header || header > end || !end[1])
			break;
		line = end + 1;
		end = line + strcspn(line, "\n");
	}
	if (strncmp(line, inlined, strlen(inlined)) == 0)
		line += strlen(inlined);
	length = (size_t)(end - line);
	memmove(lines, line, length);
	lines[length] = '\0';
}

/* Returns false if addr2line does not exist or knows no function. */
static bool ask_addr2line(const char *object, uint64_t offset, char *line, size_t size)
{
	size_t length = 0;
	ssize_t got = 1;
	int fds[2];

	if (pipe(fds) != 0)
		return false;
	pid_t child = fork();
	if (child == 0)
		become_addr2line(fds[1], object, offset);
	close(fds[1]);
	while (child > 0 && got > 0 && length + 1 < size) {
		got = read(fds[0], line + length, size - 1 - length);
		length += got > 0 ? (size_t)got : 0;
	}
	close(fds[0]);
	line[length] = '\0';
	keep_line(line);
	if (child > 0)
		(void)waitpid(child, NULL, 0);
	return line[0] && line[0] != '?';
}

void code_address_describe(const void *address, bool caller, char *text, size_t size)
{
	const char *code = (const char *)address - caller;
	char line[LINE_BYTES];
	size_t length = 0;
	Dl_info info;

	if (!dladdr(code, &info) || !info.dli_fname) {
		length = put(text, size, 0, "no function, address ");
		put_hex(text, size, length, (uintptr_t)address);
		return;
	}
	const uint64_t offset = (uint64_t)(code - (const char *)info.dli_fbase);

	if (ask_addr2line(info.dli_fname, offset, line, sizeof(line))) {
		length = put(text, size, 0, line);
	} else if (info.dli_sname) {
		length = put(text, size, 0, info.dli_sname);
		length = put(text, size, length, "+");
		length = put_hex(text, size, length,
				 (uint64_t)(code - (const char *)info.dli_saddr));
	} else {
		length = put(text, size, 0, "a function without a symbol");
	}
	length = put(text, size, length, " (");
	length = put(text, size, length, base_name(info.dli_fname));
	length = put(text, size, length, "+");
	length = put_hex(text, size, length, offset);
	put(text, size, length, ")");
}

unsigned code_address_find(void *const *addresses, unsigned count, const void *code)
{
	Dl_info wanted, info;

	if (!code || !dladdr(code, &wanted))
		return count;
	for (unsigned i = 0; i < count; i++)
		if (dladdr(addresses[i], &info) && info.dli_fbase == wanted.dli_fbase)
			return i;
	return count;
}
