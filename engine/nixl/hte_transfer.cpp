/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers: a list, made by prepXfer; a batch of it each time that it is posted. */
#include "hte_backend.hpp"
#include "hte_status.hpp"
#include "hte_text.hpp"

namespace
{

constexpr int RELEASE_MS = 10000; /* what is canceled ends within half a second */

} // namespace

struct HteBackend::Transfer : nixlBackendReqH {
    std::vector<struct hte_request> requests;
    hte_list_t                      list   = HTE_LIST_NONE;
    hte_batch_t                     batch  = HTE_BATCH_NONE; /* while it is posted */
    nixl_status_t                   result = NIXL_ERR_NOT_POSTED;
};

namespace
{

nixl_status_t requests_of(const nixl_xfer_op_t &operation, const nixl_meta_dlist_t &local,
                          const nixl_meta_dlist_t &remote, hte_segment_t segment,
                          std::vector<struct hte_request> &requests)
{
    if (local.descCount() != remote.descCount()) {
        return NIXL_ERR_MISMATCH;
    }
    requests.reserve(static_cast<size_t>(local.descCount()));
    for (int i = 0; i < local.descCount(); ++i) {
        const auto at = static_cast<size_t>(i);

        if (local[at].len != remote[at].len) {
            return NIXL_ERR_MISMATCH;
        }
        requests.push_back({operation == NIXL_READ ? HTE_READ : HTE_WRITE, segment,
                            reinterpret_cast<void *>(local[at].addr), remote[at].addr, local[at].len});
    }
    return NIXL_SUCCESS;
}

} // namespace

nixl_status_t HteBackend::prepXfer(const nixl_xfer_op_t &operation, const nixl_meta_dlist_t &local,
                                   const nixl_meta_dlist_t &remote, const std::string &agent, nixlBackendReqH *&handle,
                                   const nixl_opt_b_args_t *) const
{
    auto          transfer = std::make_unique<Transfer>();
    hte_segment_t segment;
    nixl_status_t status;
    int           error = HTE_OK;

    if (!find(agent, segment)) {
        return NIXL_ERR_NOT_FOUND;
    }
    status = requests_of(operation, local, remote, segment, transfer->requests);
    if (status != NIXL_SUCCESS) {
        return status;
    }
    if (!transfer->requests.empty()) {
        error = hte_list_prepare(engine_, transfer->requests.data(), transfer->requests.size(), &transfer->list);
    }
    if (error != HTE_OK && error != HTE_ERR_LIMIT) { /* too many lists: it is checked each time it is posted */
        return hte_nixl_told(error, ("transfer with " + agent).c_str());
    }
    handle = transfer.release();
    return NIXL_SUCCESS;
}

/* A notification goes with the requests themselves: libhte sends it behind the last one. */
nixl_status_t HteBackend::submit(Transfer &transfer, const std::string &agent, const nixl_opt_b_args_t *args) const
{
    const auto &requests = transfer.requests;
    int         error    = hte_batch_alloc(engine_, requests.size(), &transfer.batch);

    if (error != HTE_OK) {
        transfer.batch = HTE_BATCH_NONE;
    } else if (args != nullptr && args->hasNotif) {
        error = hte_batch_submit_notify(engine_, transfer.batch, requests.data(), requests.size(),
                                        hte_text_of(localAgent).c_str(), hte_text_of(args->notifMsg).c_str());
    } else if (transfer.list != HTE_LIST_NONE) {
        error = hte_list_submit(engine_, transfer.batch, transfer.list);
    } else {
        error = hte_batch_submit(engine_, transfer.batch, requests.data(), requests.size());
    }
    if (error == HTE_OK) {
        return NIXL_SUCCESS;
    }
    const nixl_status_t status = hte_nixl_told(error, ("transfer with " + agent).c_str());

    if (transfer.batch != HTE_BATCH_NONE) {
        hte_batch_free(engine_, transfer.batch);
        transfer.batch = HTE_BATCH_NONE;
    }
    return status;
}

nixl_status_t HteBackend::postXfer(const nixl_xfer_op_t &, const nixl_meta_dlist_t &, const nixl_meta_dlist_t &,
                                   const std::string &agent, nixlBackendReqH *&handle,
                                   const nixl_opt_b_args_t *args) const
{
    auto *transfer = static_cast<Transfer *>(handle);

    if (transfer->batch != HTE_BATCH_NONE && checkXfer(transfer) == NIXL_IN_PROG) {
        return NIXL_ERR_REPOST_ACTIVE;
    }
    if (transfer->requests.empty()) {
        return transfer->result = args != nullptr && args->hasNotif ? genNotif(agent, args->notifMsg) : NIXL_SUCCESS;
    }
    transfer->result = submit(*transfer, agent, args);
    return transfer->result == NIXL_SUCCESS ? checkXfer(transfer) : transfer->result;
}

nixl_status_t HteBackend::checkXfer(nixlBackendReqH *handle) const
{
    auto                   *transfer = static_cast<Transfer *>(handle);
    struct hte_batch_status status;
    int                     error;

    if (transfer->batch == HTE_BATCH_NONE) {
        return transfer->result;
    }
    error = hte_batch_status(engine_, transfer->batch, &status);
    if (error == HTE_OK && status.code < HTE_INVALID) {
        return NIXL_IN_PROG;
    }
    if (error == HTE_OK) {
        error = hte_batch_free(engine_, transfer->batch);
    }
    transfer->batch = HTE_BATCH_NONE;
    if (error != HTE_OK) {
        transfer->result = hte_nixl_told(error, "end of a transfer");
    } else if (status.code == HTE_COMPLETED) {
        transfer->result = NIXL_SUCCESS;
    } else {
        transfer->result = hte_nixl_status(status.error);
        NIXL_ERROR << "HTE: a transfer failed: " << hte_error_string(status.error);
    }
    return transfer->result;
}

/* What is under way is canceled: when this has returned with success nothing uses the memory any more. */
nixl_status_t HteBackend::releaseReqH(nixlBackendReqH *handle) const
{
    auto *transfer = static_cast<Transfer *>(handle);
    int   error    = HTE_OK;

    if (transfer->batch != HTE_BATCH_NONE) {
        hte_batch_cancel(engine_, transfer->batch);
        error = hte_batch_wait(engine_, transfer->batch, RELEASE_MS, nullptr);
        error = error == HTE_OK ? hte_batch_free(engine_, transfer->batch) : error;
    }
    if (error != HTE_OK) {
        return hte_nixl_told(error, "a transfer that does not end: release it later");
    }
    if (transfer->list != HTE_LIST_NONE) {
        hte_list_release(engine_, transfer->list);
    }
    delete transfer;
    return NIXL_SUCCESS;
}
