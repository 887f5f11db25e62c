/* SPDX-License-Identifier: MIT */
/*
 * flags: which flags of creation exist at which version (SFL-33) and on which types, and which
 * exclude one another. packet.c and signal.c check the flags of waits and signals. Pure: tables,
 * and one order of checks.
 */
#include "sync/sync.h"

#define TYPE(name) (1u << VMM_SYNC_##name)
#define MONITORED  (TYPE(MONITORED_FENCE) | TYPE(PERIODIC_MONITORED_FENCE))

static bool refuse_flags(struct vmm_sync_refusal *refusal, const char *rule, const char *why)
{
	*refusal = (struct vmm_sync_refusal){.rule = rule, .why = why};
	return false;
}

/* The bits that have a name at that version; all others are reserved. (SFL-31, SFL-32, SFL-33) */
static uint32_t named_flags(uint32_t version)
{
	static const struct {
		uint32_t since, flags;
	} steps[] = {
		{VMM_SYNC_WDDM_3_2, 0x7FF}, {VMM_SYNC_WDDM_3_1, 0x3FF}, {VMM_SYNC_WDDM_3_0, 0x1FF},
		{VMM_SYNC_WDDM_2_0, 0x0FF}, {VMM_SYNC_WDDM_1_3, 0x007}, {VMM_SYNC_WDDM_1_2, 0x003},
		{VMM_SYNC_WDDM_1_1, 0x001},
	};

	for (uint32_t i = 0; i < VMM_ARRAY_LENGTH(steps); i++)
		if (version >= steps[i].since)
			return steps[i].flags;
	return 0;
}

static bool check_type(uint32_t version, bool first_form, uint32_t type,
		       struct vmm_sync_refusal *refusal)
{
	static const uint32_t since[VMM_SYNC_TYPE_LIMIT] = {
		[VMM_SYNC_MUTEX] = VMM_SYNC_WDDM_1_0,
		[VMM_SYNC_SEMAPHORE] = VMM_SYNC_WDDM_1_0,
		[VMM_SYNC_FENCE] = VMM_SYNC_WDDM_1_1,
		[VMM_SYNC_CPU_NOTIFICATION] = VMM_SYNC_WDDM_1_1,
		[VMM_SYNC_MONITORED_FENCE] = VMM_SYNC_WDDM_2_0,
		[VMM_SYNC_PERIODIC_MONITORED_FENCE] = VMM_SYNC_WDDM_2_2,
	};

	if (first_form && !type)
		return refuse_flags(refusal, "SYN-03", "the type is 0, which does not exist");
	if (first_form && type != VMM_SYNC_MUTEX && type != VMM_SYNC_SEMAPHORE)
		return refuse_flags(refusal, "SYN-05",
				    "the call of WDDM 1.0 creates only mutexes and semaphores");
	if (!type || type >= VMM_SYNC_TYPE_LIMIT)
		return refuse_flags(refusal, "SYN-06", "the type does not exist");
	if (version < since[type])
		return refuse_flags(refusal, "SYN-06", "the type does not exist at this version");
	return true;
}

/* Names the first of the flags that a later version has. `later`: at least one such flag. */
static const char *why_later(uint32_t later)
{
	static const struct {
		uint32_t flag;
		const char *why;
	} flags[] = {
		{VMM_SYNC_NT_SECURITY, "NtSecuritySharing exists from WDDM 1.2 (0x3000) on"},
		{VMM_SYNC_CROSS_ADAPTER, "CrossAdapter exists from WDDM 1.3 (0x4000) on"},
		{VMM_SYNC_SIGNAL_BY_KMD,
		 "SignalByKmd exists from WDDM 3.0 (0xF000) on, and needs a miniport with "
		 "DxgkDdiCreateCpuEvent"},
		{VMM_SYNC_UNUSED, "bit 9 has a name from WDDM 3.1 (0x10000) on"},
		{VMM_SYNC_UNWAIT_ON_LAST,
		 "UnwaitCpuWaitersOnlyOnDestroy exists from WDDM 3.2 (0x11000) on"},
	};

	for (uint32_t i = 0; i < VMM_ARRAY_LENGTH(flags); i++)
		if (later & flags[i].flag)
			return flags[i].why;
	return "a flag that exists only from WDDM 2.0 (0x5000) on"; /* bits 3 to 7 */
}

static bool check_reserved(uint32_t version, uint32_t flags, struct vmm_sync_refusal *refusal)
{
	uint32_t reserved = flags & ~named_flags(version);

	if (reserved & ~0x7FFu)
		return refuse_flags(refusal, "SFL-31", "reserved bits are set");
	if (reserved)
		return refuse_flags(refusal, "SFL-32", why_later(reserved));
	return true;
}

static bool check_sharing(uint32_t type, uint32_t flags, struct vmm_sync_refusal *refusal)
{
	bool shared = flags & VMM_SYNC_SHARED, nt = flags & VMM_SYNC_NT_SECURITY;

	if (nt && !shared)
		return refuse_flags(refusal, "SFL-05", "NtSecuritySharing without Shared");
	if (shared && !nt && (1u << type & MONITORED))
		return refuse_flags(refusal, "SFL-03",
				    "a monitored fence is shared by an NT handle or not at all");
	return true;
}

static bool check_fit(uint32_t type, uint32_t flags, struct vmm_sync_refusal *refusal)
{
	static const struct {
		uint32_t flag, types;
		struct vmm_sync_refusal refusal;
	} fits[] = {
		{VMM_SYNC_CROSS_ADAPTER,
		 TYPE(FENCE) | TYPE(MONITORED_FENCE),
		 {"SFL-10", "CrossAdapter is valid only for fences and monitored fences"}},
		{VMM_SYNC_TOP_OF_PIPELINE,
		 TYPE(MONITORED_FENCE),
		 {"SFL-13", "TopOfPipeline is valid only for monitored fences"}},
		{VMM_SYNC_NO_SIGNAL | VMM_SYNC_NO_WAIT,
		 TYPE(MONITORED_FENCE),
		 {"SFL-17", "NoSignal and NoWait are valid only for monitored fences"}},
		{VMM_SYNC_NO_MAX_ON_TDR,
		 TYPE(MONITORED_FENCE),
		 {"SFL-18", "NoSignalMaxValueOnTdr is valid only for monitored fences"}},
		{VMM_SYNC_NO_GPU_ACCESS,
		 MONITORED,
		 {"SFL-20", "NoGPUAccess is valid only for monitored fences"}},
		{VMM_SYNC_SIGNAL_BY_KMD,
		 TYPE(CPU_NOTIFICATION),
		 {"SFL-23", "SignalByKmd is valid only for CPU notifications"}},
		{VMM_SYNC_UNUSED, 0, {"SFL-26", "bit 9 must be 0"}},
	};

	for (uint32_t i = 0; i < VMM_ARRAY_LENGTH(fits); i++)
		if ((flags & fits[i].flag) && !(1u << type & fits[i].types)) {
			*refusal = fits[i].refusal;
			return false;
		}
	if ((flags & VMM_SYNC_CROSS_ADAPTER) && !(flags & VMM_SYNC_SHARED))
		return refuse_flags(refusal, "SFL-10", "CrossAdapter without Shared");
	if ((flags & VMM_SYNC_NO_SIGNAL) && (flags & VMM_SYNC_NO_WAIT))
		return refuse_flags(refusal, "SFL-17", "NoSignal and NoWait exclude each other");
	if ((flags & VMM_SYNC_SIGNAL_BY_KMD) && (flags & VMM_SYNC_SHARED))
		return refuse_flags(refusal, "SFL-25",
				    "an object with SignalByKmd cannot be shared");
	return true;
}

bool vmm_sync_may_create(uint32_t version, bool first_form, uint32_t type, uint32_t flags,
			 struct vmm_sync_refusal *refusal)
{
	return check_type(version, first_form, type, refusal) &&
	       check_reserved(version, flags, refusal) && check_sharing(type, flags, refusal) &&
	       check_fit(type, flags, refusal);
}

bool vmm_sync_may_open(uint32_t version, uint32_t type, uint32_t flags,
		       struct vmm_sync_refusal *refusal)
{
	/* Flags of the object, not of the opening: not checked here. (SFL-34) */
	const uint32_t others = VMM_SYNC_SHARED | VMM_SYNC_NT_SECURITY | VMM_SYNC_CROSS_ADAPTER |
				VMM_SYNC_UNWAIT_ON_LAST;

	if (!check_reserved(version, flags, refusal))
		return false;
	if (flags & VMM_SYNC_SIGNAL_BY_KMD)
		return refuse_flags(refusal, "SFL-34", "SignalByKmd is valid only at creation");
	return check_fit(type, flags & ~others, refusal);
}
