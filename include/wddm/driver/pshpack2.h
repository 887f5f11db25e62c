/* SPDX-License-Identifier: MIT */
/* Members of the structures that follow have an alignment of 2 bytes at most, until poppack.h. */
#pragma pack(push, 2)
