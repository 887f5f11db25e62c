/* SPDX-License-Identifier: MIT */
/*
 * Globally unique identifiers: DEFINE_GUID, and comparison. May be included again after INITGUID.
 */
#include <wddm_base.h>

#undef DEFINE_GUID
#ifdef __cplusplus
#define WDDM_GUID_LINKAGE extern "C" const
#else
#define WDDM_GUID_LINKAGE const
#endif
#undef WDDM_GUID_DEFINED
#ifdef INITGUID
#define DEFINE_GUID(name, l, w1, w2, b1, b2, b3, b4, b5, b6, b7, b8)                \
	WDDM_GUID_LINKAGE GUID name __attribute__((weak, visibility("hidden"))) = { \
		l, w1, w2, {b1, b2, b3, b4, b5, b6, b7, b8}}
#else
#define DEFINE_GUID(name, l, w1, w2, b1, b2, b3, b4, b5, b6, b7, b8) EXTERN_C const GUID name
#endif

#ifndef WDDM_GUIDDEF_H
#define WDDM_GUIDDEF_H
#ifdef __cplusplus
typedef const GUID &REFGUID;
typedef const GUID &REFIID;
static inline bool IsEqualGUID(REFGUID a, REFGUID b)
{
	return memcmp(&a, &b, sizeof(GUID)) == 0;
}
static inline bool operator==(REFGUID a, REFGUID b)
{
	return IsEqualGUID(a, b);
}
static inline bool operator!=(REFGUID a, REFGUID b)
{
	return !IsEqualGUID(a, b);
}
#else
typedef const GUID *REFGUID;
typedef const GUID *REFIID;
#define IsEqualGUID(a, b) (!memcmp((a), (b), sizeof(GUID)))
#endif
#endif
