/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * The functions of OTF2's C library that ibprof calls, for cffi. Handles are `void *`. The union OTF2_AttributeValue is
 * declared as a 64-bit integer, because cffi cannot pass unions by value. On x86-64, AArch64 and POWER, functions pass
 * this union in the same way as a 64-bit integer.
 */
#ifndef IBPROF_OTF2_H
#define IBPROF_OTF2_H

#include <stdint.h>

/* -- cffi begins -- */

enum {
    OTF2_UNDEFINED_REFERENCE = 4294967295,
    OTF2_FILEMODE_WRITE = 0,
    OTF2_SUBSTRATE_POSIX = 1,
    OTF2_COMPRESSION_NONE = 1,
    OTF2_FLUSH = 1,
    OTF2_TYPE_UINT64 = 4,
    OTF2_TYPE_INT64 = 8,
    OTF2_TYPE_DOUBLE = 10,
    OTF2_TYPE_STRING = 11,
    OTF2_PARADIGM_USER = 1,
    OTF2_PARADIGM_COMPILER = 2,
    OTF2_PARADIGM_MPI = 4,
    OTF2_REGION_ROLE_FUNCTION = 1,
    OTF2_REGION_ROLE_CODE = 4,
    OTF2_REGION_FLAG_NONE = 0,
    OTF2_LOCATION_GROUP_TYPE_PROCESS = 1,
    OTF2_LOCATION_TYPE_CPU_THREAD = 1,
    OTF2_PARAMETER_TYPE_STRING = 0,
    OTF2_PARAMETER_TYPE_UINT64 = 2,
    OTF2_METRIC_TYPE_OTHER = 0,
    OTF2_METRIC_ABSOLUTE_POINT = 17,
    OTF2_BASE_DECIMAL = 1,
    OTF2_METRIC_ASYNCHRONOUS = 2,
    OTF2_RECORDER_KIND_CPU = 2
};
struct ibp_flush_callbacks {
    uint8_t (*pre_flush)(void *, uint8_t, uint64_t, void *, _Bool);
    uint64_t (*post_flush)(void *, uint8_t, uint64_t);
};
const char *OTF2_Error_GetDescription(int code);

void *OTF2_Archive_Open(const char *, const char *, uint8_t, uint64_t, uint64_t, uint8_t, uint8_t);
int OTF2_Archive_SetFlushCallbacks(void *, const struct ibp_flush_callbacks *, void *);
int OTF2_Archive_SetSerialCollectiveCallbacks(void *);
int OTF2_Archive_SetCreator(void *, const char *);
int OTF2_Archive_OpenDefFiles(void *);
int OTF2_Archive_OpenEvtFiles(void *);
void *OTF2_Archive_GetDefWriter(void *, uint64_t);
void *OTF2_Archive_GetEvtWriter(void *, uint64_t);
void *OTF2_Archive_GetGlobalDefWriter(void *);
int OTF2_Archive_CloseDefWriter(void *, void *);
int OTF2_Archive_CloseEvtWriter(void *, void *);
int OTF2_Archive_CloseGlobalDefWriter(void *, void *);
int OTF2_Archive_CloseEvtFiles(void *);
int OTF2_Archive_CloseDefFiles(void *);
int OTF2_Archive_Close(void *);
int OTF2_EvtWriter_Enter(void *, void *, uint64_t, uint32_t);
int OTF2_EvtWriter_Leave(void *, void *, uint64_t, uint32_t);
int OTF2_EvtWriter_ParameterUnsignedInt(void *, void *, uint64_t, uint32_t, uint64_t);
int OTF2_EvtWriter_ParameterString(void *, void *, uint64_t, uint32_t, uint32_t);
int OTF2_EvtWriter_Metric(void *, void *, uint64_t, uint32_t, uint8_t, const uint8_t *, const uint64_t *);
int OTF2_GlobalDefWriter_WriteClockProperties(void *, uint64_t, uint64_t, uint64_t, uint64_t);
int OTF2_GlobalDefWriter_WriteString(void *, uint32_t, const char *);
int OTF2_GlobalDefWriter_WriteSystemTreeNode(void *, uint32_t, uint32_t, uint32_t, uint32_t);
int OTF2_GlobalDefWriter_WriteSystemTreeNodeProperty(void *, uint32_t, uint32_t, uint8_t, uint64_t);
int OTF2_GlobalDefWriter_WriteLocationGroup(void *, uint32_t, uint32_t, uint8_t, uint32_t, uint32_t);
int OTF2_GlobalDefWriter_WriteLocation(void *, uint64_t, uint32_t, uint8_t, uint64_t, uint32_t);
int OTF2_GlobalDefWriter_WriteLocationProperty(void *, uint64_t, uint32_t, uint8_t, uint64_t);
int OTF2_GlobalDefWriter_WriteRegion(void *, uint32_t, uint32_t, uint32_t, uint32_t, uint8_t, uint8_t, uint32_t,
                                     uint32_t, uint32_t, uint32_t);
int OTF2_GlobalDefWriter_WriteCallpath(void *, uint32_t, uint32_t, uint32_t);
int OTF2_GlobalDefWriter_WriteCallpathParameter(void *, uint32_t, uint32_t, uint8_t, uint64_t);
int OTF2_GlobalDefWriter_WriteSourceCodeLocation(void *, uint32_t, uint32_t, uint32_t);
int OTF2_GlobalDefWriter_WriteMetricMember(void *, uint32_t, uint32_t, uint32_t, uint8_t, uint8_t, uint8_t, uint8_t,
                                           int64_t, uint32_t);
int OTF2_GlobalDefWriter_WriteMetricClass(void *, uint32_t, uint8_t, const uint32_t *, uint8_t, uint8_t);
int OTF2_GlobalDefWriter_WriteParameter(void *, uint32_t, uint32_t, uint8_t);

void *OTF2_Reader_Open(const char *);
int OTF2_Reader_SetSerialCollectiveCallbacks(void *);
void *OTF2_Reader_GetGlobalDefReader(void *);
void *OTF2_GlobalDefReaderCallbacks_New(void);
void OTF2_GlobalDefReaderCallbacks_Delete(void *);
int OTF2_Reader_RegisterGlobalDefCallbacks(void *, void *, void *, void *);
int OTF2_Reader_ReadAllGlobalDefinitions(void *, void *, uint64_t *);
int OTF2_Reader_CloseGlobalDefReader(void *, void *);
int OTF2_Reader_SelectLocation(void *, uint64_t);
int OTF2_Reader_OpenDefFiles(void *);
int OTF2_Reader_OpenEvtFiles(void *);
void *OTF2_Reader_GetDefReader(void *, uint64_t);
void *OTF2_Reader_GetEvtReader(void *, uint64_t);
int OTF2_Reader_ReadAllLocalDefinitions(void *, void *, uint64_t *);
int OTF2_Reader_CloseDefReader(void *, void *);
int OTF2_Reader_CloseEvtReader(void *, void *);
int OTF2_Reader_CloseEvtFiles(void *);
int OTF2_Reader_CloseDefFiles(void *);
int OTF2_Reader_Close(void *);
void *OTF2_EvtReaderCallbacks_New(void);
void OTF2_EvtReaderCallbacks_Delete(void *);
int OTF2_EvtReaderCallbacks_SetEnterCallback(void *, void *);
int OTF2_EvtReaderCallbacks_SetLeaveCallback(void *, void *);
int OTF2_EvtReaderCallbacks_SetParameterUnsignedIntCallback(void *, void *);
int OTF2_EvtReaderCallbacks_SetParameterStringCallback(void *, void *);
int OTF2_EvtReaderCallbacks_SetMetricCallback(void *, void *);
int OTF2_Reader_RegisterEvtCallbacks(void *, void *, void *, void *);
int OTF2_Reader_ReadAllLocalEvents(void *, void *, uint64_t *);
int OTF2_GlobalDefReaderCallbacks_SetClockPropertiesCallback(void *,
                                                             int (*)(void *, uint64_t, uint64_t, uint64_t, uint64_t));
int OTF2_GlobalDefReaderCallbacks_SetStringCallback(void *, int (*)(void *, uint32_t, const char *));
int OTF2_GlobalDefReaderCallbacks_SetSystemTreeNodeCallback(void *,
                                                            int (*)(void *, uint32_t, uint32_t, uint32_t, uint32_t));
int OTF2_GlobalDefReaderCallbacks_SetSystemTreeNodePropertyCallback(void *, int (*)(void *, uint32_t, uint32_t, uint8_t,
                                                                                    uint64_t));
int OTF2_GlobalDefReaderCallbacks_SetLocationGroupCallback(void *, int (*)(void *, uint32_t, uint32_t, uint8_t,
                                                                           uint32_t, uint32_t));
int OTF2_GlobalDefReaderCallbacks_SetLocationCallback(void *,
                                                      int (*)(void *, uint64_t, uint32_t, uint8_t, uint64_t, uint32_t));
int OTF2_GlobalDefReaderCallbacks_SetLocationPropertyCallback(void *,
                                                              int (*)(void *, uint64_t, uint32_t, uint8_t, uint64_t));
int OTF2_GlobalDefReaderCallbacks_SetRegionCallback(void *,
                                                    int (*)(void *, uint32_t, uint32_t, uint32_t, uint32_t, uint8_t,
                                                            uint8_t, uint32_t, uint32_t, uint32_t, uint32_t));
int OTF2_GlobalDefReaderCallbacks_SetCallpathCallback(void *, int (*)(void *, uint32_t, uint32_t, uint32_t));
int OTF2_GlobalDefReaderCallbacks_SetCallpathParameterCallback(void *,
                                                               int (*)(void *, uint32_t, uint32_t, uint8_t, uint64_t));
int OTF2_GlobalDefReaderCallbacks_SetSourceCodeLocationCallback(void *, int (*)(void *, uint32_t, uint32_t, uint32_t));
int OTF2_GlobalDefReaderCallbacks_SetMetricMemberCallback(void *,
                                                          int (*)(void *, uint32_t, uint32_t, uint32_t, uint8_t,
                                                                  uint8_t, uint8_t, uint8_t, int64_t, uint32_t));
int OTF2_GlobalDefReaderCallbacks_SetMetricClassCallback(void *, int (*)(void *, uint32_t, uint8_t, const uint32_t *,
                                                                         uint8_t, uint8_t));
int OTF2_GlobalDefReaderCallbacks_SetParameterCallback(void *, int (*)(void *, uint32_t, uint32_t, uint8_t));

/* -- cffi ends -- */

#endif
