/* SPDX-License-Identifier: MIT */
/* Ends what the last of pshpack1.h to pshpack16.h began. */
#pragma pack(pop)
