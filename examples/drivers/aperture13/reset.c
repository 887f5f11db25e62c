/* SPDX-License-Identifier: MIT */
/* Timeout recovery: of the engine first, of the whole adapter if that does not help. */
#include "driver.h"

NTSTATUS A13ResetEngine(CONST HANDLE hAdapter, DXGKARG_RESETENGINE *Args)
{
	Args->LastAbortedFenceId = EngineReset(hAdapter);
	return STATUS_SUCCESS;
}

NTSTATUS A13QueryEngineStatus(CONST HANDLE hAdapter, DXGKARG_QUERYENGINESTATUS *Args)
{
	Args->EngineStatus.Value = 0;
	Args->EngineStatus.Responsive = !((ADAPTER *)hAdapter)->Engine.IsHung;
	return STATUS_SUCCESS;
}

NTSTATUS A13QueryDependentEngineGroup(CONST HANDLE hAdapter,
				      DXGKARG_QUERYDEPENDENTENGINEGROUP *Args)
{
	UNREFERENCED_PARAMETER(hAdapter);
	Args->DependentNodeOrdinalMask = 1ull << Args->NodeOrdinal;
	return STATUS_SUCCESS;
}

/*
 * On return the GPU accesses no memory. The pages behind the GART go back to the memory manager,
 * and no engine will execute the UNMAP commands of the cleanup.
 */
NTSTATUS A13ResetFromTimeout(CONST HANDLE hAdapter)
{
	ADAPTER *Adapter = hAdapter;

	EngineReset(Adapter);
	InterlockedExchange(&Adapter->Engine.CompletedFence, (LONG)Adapter->Engine.SubmittedFence);
	RtlZeroMemory(Adapter->Gart, Adapter->GartPages * sizeof(*Adapter->Gart));
	return STATUS_SUCCESS;
}

NTSTATUS A13RestartFromTimeout(CONST HANDLE hAdapter)
{
	UNREFERENCED_PARAMETER(hAdapter);
	return STATUS_SUCCESS;
}

NTSTATUS A13CollectDbgInfo(CONST HANDLE hAdapter, CONST DXGKARG_COLLECTDBGINFO *Args)
{
	CONST ENGINE *Engine = &((ADAPTER *)hAdapter)->Engine;
	ULONG Fences[2];

	if (!Args->pBuffer)
		return STATUS_INVALID_PARAMETER;
	Fences[0] = Engine->SubmittedFence;
	Fences[1] = (ULONG)Engine->CompletedFence;
	RtlCopyMemory(Args->pBuffer, Fences, min(Args->BufferSize, sizeof(Fences)));
	return STATUS_SUCCESS;
}
