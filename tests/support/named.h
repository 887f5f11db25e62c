/* SPDX-License-Identifier: MIT */
#ifndef VMM_TESTS_SUPPORT_NAMED_H
#define VMM_TESTS_SUPPORT_NAMED_H

#include <stdint.h>
#include <string.h>

#include <d3dkmthk.h>

/* An OBJECT_ATTRIBUTES with an ASCII name of at most 64 characters. */
struct named {
	uint16_t text[64];
	UNICODE_STRING string;
	OBJECT_ATTRIBUTES attributes;
};

static inline OBJECT_ATTRIBUTES *name_it(struct named *n, const char *name)
{
	memset(n, 0, sizeof(*n));
	n->string.Buffer = (PWSTR)(void *)n->text;
	for (; name[n->string.Length / 2]; n->string.Length += 2)
		n->text[n->string.Length / 2] = (uint8_t)name[n->string.Length / 2];
	n->attributes =
		(OBJECT_ATTRIBUTES){.Length = sizeof(n->attributes), .ObjectName = &n->string};
	return &n->attributes;
}

#endif
