/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_NIXL_BACKEND_H_
#define HTE_NIXL_BACKEND_H_

/*
 * NIXL's backend HTE: an agent's transfers over libhte, of which it sees hte.h only.
 *
 *   agent          engine, its name is the connection info
 *   remote agent   segment, opened by that name
 *   transfer       prepXfer: a list, checked and pinned once; postXfer: a batch of it; releaseReqH: canceled, given
 * back notification   hte_notification, name = the sending agent; text = the bytes, escaped (they may be any)
 */

#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend/backend_engine.h"
#include "hte.h"

class HteBackend : public nixlBackendEngine
{
  public:
    explicit HteBackend(const nixlBackendInitParams *params);
    ~HteBackend() override;

    bool supportsRemote() const override
    {
        return true;
    }
    bool supportsLocal() const override
    {
        return true;
    }
    bool supportsNotif() const override
    {
        return true;
    }
    nixl_mem_list_t getSupportedMems() const override
    {
        return memories();
    }
    static nixl_mem_list_t memories()
    {
        return {DRAM_SEG};
    }
    static nixl_b_params_t options();

    nixl_status_t getConnInfo(std::string &info) const override;
    nixl_status_t loadRemoteConnInfo(const std::string &agent, const std::string &info) override;
    nixl_status_t connect(const std::string &agent) override;
    nixl_status_t disconnect(const std::string &agent) override;

    nixl_status_t registerMem(const nixlBlobDesc &memory, const nixl_mem_t &type, nixlBackendMD *&region) override;
    nixl_status_t deregisterMem(nixlBackendMD *region) override;
    nixl_status_t queryMem(const nixl_reg_dlist_t &memories, std::vector<nixl_query_resp_t> &answers) const override;

    /* What peers need to know of memory is in the segment's descriptor, which libhte fetches by itself. */
    nixl_status_t getPublicData(const nixlBackendMD *, std::string &) const override
    {
        return NIXL_SUCCESS;
    }
    nixl_status_t loadLocalMD(nixlBackendMD *, nixlBackendMD *&output) override;
    nixl_status_t loadRemoteMD(const nixlBlobDesc &, const nixl_mem_t &, const std::string &,
                               nixlBackendMD *&output) override;
    nixl_status_t unloadMD(nixlBackendMD *) override
    {
        return NIXL_SUCCESS;
    }

    nixl_status_t prepXfer(const nixl_xfer_op_t &operation, const nixl_meta_dlist_t &local,
                           const nixl_meta_dlist_t &remote, const std::string &agent, nixlBackendReqH *&handle,
                           const nixl_opt_b_args_t *args) const override;
    nixl_status_t postXfer(const nixl_xfer_op_t &operation, const nixl_meta_dlist_t &local,
                           const nixl_meta_dlist_t &remote, const std::string &agent, nixlBackendReqH *&handle,
                           const nixl_opt_b_args_t *args) const override;
    nixl_status_t checkXfer(nixlBackendReqH *handle) const override;
    nixl_status_t releaseReqH(nixlBackendReqH *handle) const override;

    nixl_status_t getNotifs(notif_list_t &notifications) override;
    nixl_status_t genNotif(const std::string &agent, const std::string &message) const override;

  private:
    struct Region : nixlBackendMD {
        Region() : nixlBackendMD(true)
        {
        }
        uintptr_t addr   = 0;
        size_t    length = 0;
        unsigned  count  = 1; /* NIXL may register the same memory several times, libhte does not */
    };
    struct Transfer;

    bool          find(const std::string &agent, hte_segment_t &segment) const;
    nixl_status_t submit(Transfer &transfer, const std::string &agent, const nixl_opt_b_args_t *args) const;

    struct hte_engine                             *engine_ = nullptr;
    mutable std::mutex                             mutex_; /* of the two maps */
    std::map<uintptr_t, Region *>                  regions_;
    std::unordered_map<std::string, hte_segment_t> segments_;
};

#endif
