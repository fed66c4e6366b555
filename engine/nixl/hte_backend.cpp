/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_backend.hpp"

#include "hte_status.hpp"
#include "hte_text.hpp"

namespace
{

constexpr int CONNECT_MS = 5000;

bool is_field(const std::string &key)
{
    return key == "metadata" || key == "name" || key == "bind_host";
}

} // namespace

/* Every option of libhte, and what hte_config has besides. An empty value is the default. */
nixl_b_params_t HteBackend::options()
{
    nixl_b_params_t        options = {{"metadata", ""}, {"name", ""}, {"bind_host", ""}};
    struct hte_option_help help;

    for (unsigned i = 0; hte_option_help(i, &help) == HTE_OK; ++i) {
        options[help.key] = "";
    }
    return options;
}

HteBackend::HteBackend(const nixlBackendInitParams *params) : nixlBackendEngine(params)
{
    struct hte_config              config = {};
    std::vector<struct hte_option> options;

    config.size = sizeof(config);
    for (const auto &[key, value] : getCustomParams()) {
        if (!value.empty() && !is_field(key)) {
            options.push_back({key.c_str(), value.c_str()});
        }
    }
    const auto text = [this](const char *key) {
        const auto at = getCustomParams().find(key);

        return at == getCustomParams().end() || at->second.empty() ? nullptr : at->second.c_str();
    };
    config.metadata  = text("metadata");
    config.name      = text("name");
    config.bind_host = text("bind_host");
    config.options   = options.data();
    config.n_options = options.size();
    initErr          = hte_nixl_told(hte_create(&config, &engine_), "creating the engine") != NIXL_SUCCESS;
}

HteBackend::~HteBackend()
{
    hte_destroy(engine_);
    for (const auto &[addr, region] : regions_) {
        delete region;
    }
}

/* ---- other agents ---- */

nixl_status_t HteBackend::getConnInfo(std::string &info) const
{
    char name[HTE_NAME_MAX + 1];
    int  error = hte_local_name(engine_, name, sizeof(name));

    if (error == HTE_OK) {
        info = name;
    }
    return hte_nixl_told(error, "name of the engine");
}

nixl_status_t HteBackend::loadRemoteConnInfo(const std::string &agent, const std::string &info)
{
    hte_segment_t segment, old = HTE_SEGMENT_NONE;
    int           error = hte_segment_open(engine_, info.c_str(), &segment);

    if (error != HTE_OK) {
        return hte_nixl_told(error, ("agent " + agent + " at " + info).c_str());
    }
    {
        std::lock_guard<std::mutex> guard(mutex_);
        const auto                  at = segments_.find(agent);

        old              = at == segments_.end() ? HTE_SEGMENT_NONE : at->second;
        segments_[agent] = segment;
    }
    if (old != HTE_SEGMENT_NONE) {
        hte_segment_close(engine_, old);
    }
    return NIXL_SUCCESS;
}

bool HteBackend::find(const std::string &agent, hte_segment_t &segment) const
{
    std::lock_guard<std::mutex> guard(mutex_);
    const auto                  at = segments_.find(agent);

    if (at == segments_.end() && agent != localAgent) {
        NIXL_ERROR << "HTE: agent " << agent << " is not known: its metadata was not loaded";
        return false;
    }
    segment = at == segments_.end() ? HTE_SEGMENT_LOCAL : at->second;
    return true;
}

nixl_status_t HteBackend::connect(const std::string &agent)
{
    hte_segment_t segment;

    if (!find(agent, segment)) {
        return NIXL_ERR_NOT_FOUND;
    }
    return segment == HTE_SEGMENT_LOCAL
               ? NIXL_SUCCESS
               : hte_nixl_told(hte_segment_warm(engine_, segment, CONNECT_MS), ("connecting to " + agent).c_str());
}

nixl_status_t HteBackend::disconnect(const std::string &agent)
{
    hte_segment_t segment;
    {
        std::lock_guard<std::mutex> guard(mutex_);
        const auto                  at = segments_.find(agent);

        if (at == segments_.end()) {
            return agent == localAgent ? NIXL_SUCCESS : NIXL_ERR_NOT_FOUND;
        }
        segment = at->second;
        segments_.erase(at);
    }
    return hte_nixl_status(hte_segment_close(engine_, segment));
}

/* ---- memory ---- */

nixl_status_t HteBackend::registerMem(const nixlBlobDesc &memory, const nixl_mem_t &type, nixlBackendMD *&region)
{
    const std::string           place = type == VRAM_SEG ? "cuda:" + std::to_string(memory.devId) : "*";
    std::lock_guard<std::mutex> guard(mutex_);
    const auto                  at = regions_.find(memory.addr);

    if (type != DRAM_SEG && type != VRAM_SEG) {
        return NIXL_ERR_NOT_SUPPORTED;
    }
    if (at != regions_.end() && at->second->length >= memory.len) {
        ++at->second->count;
        region = at->second;
        return NIXL_SUCCESS;
    }
    const struct hte_memory wanted = {reinterpret_cast<void *>(memory.addr), memory.len, place.c_str(),
                                      HTE_PERM_GLOBAL_RW};
    const int               error  = hte_memory_register(engine_, &wanted);

    if (error != HTE_OK) {
        return hte_nixl_told(error, "registering memory");
    }
    auto *made            = new Region();
    made->addr            = memory.addr;
    made->length          = memory.len;
    regions_[memory.addr] = made;
    region                = made;
    return NIXL_SUCCESS;
}

nixl_status_t HteBackend::deregisterMem(nixlBackendMD *meta)
{
    auto                       *region = static_cast<Region *>(meta);
    std::lock_guard<std::mutex> guard(mutex_);

    if (region->count > 1) {
        --region->count;
        return NIXL_SUCCESS;
    }
    const int error = hte_memory_unregister(engine_, reinterpret_cast<void *>(region->addr));

    if (error == HTE_ERR_MEMORY_BUSY) {
        return hte_nixl_told(error, "a transfer uses the memory");
    }
    regions_.erase(region->addr);
    delete region;
    return hte_nixl_told(error, "unregistering memory");
}

/* Whether it is registered, and the range of which it is a part. */
nixl_status_t HteBackend::queryMem(const nixl_reg_dlist_t &memories, std::vector<nixl_query_resp_t> &answers) const
{
    std::lock_guard<std::mutex> guard(mutex_);

    answers.clear();
    for (const auto &memory : memories) {
        auto at = regions_.upper_bound(memory.addr);

        answers.emplace_back();
        if (at == regions_.begin()) {
            continue;
        }
        --at;
        if (memory.addr - at->first <= at->second->length &&
            memory.len <= at->second->length - (memory.addr - at->first)) {
            answers.back() = nixl_b_params_t{{"addr", std::to_string(at->first)},
                                             {"length", std::to_string(at->second->length)}};
        }
    }
    return NIXL_SUCCESS;
}

nixl_status_t HteBackend::loadLocalMD(nixlBackendMD *, nixlBackendMD *&output)
{
    output = nullptr;
    return NIXL_SUCCESS;
}

nixl_status_t HteBackend::loadRemoteMD(const nixlBlobDesc &, const nixl_mem_t &, const std::string &,
                                       nixlBackendMD *&output)
{
    output = nullptr;
    return NIXL_SUCCESS;
}

/* ---- notifications ---- */

nixl_status_t HteBackend::getNotifs(notif_list_t &notifications)
{
    struct hte_notification *arrived;
    size_t                   count;
    int                      error;

    if (!notifications.empty()) {
        return NIXL_ERR_INVALID_PARAM;
    }
    error = hte_notify_drain(engine_, &arrived, &count);
    if (error != HTE_OK) {
        return hte_nixl_told(error, "notifications");
    }
    for (size_t i = 0; i < count; ++i) {
        notifications.emplace_back(hte_bytes_of(arrived[i].name), hte_bytes_of(arrived[i].text));
    }
    hte_notify_free(arrived, count);
    return NIXL_SUCCESS;
}

nixl_status_t HteBackend::genNotif(const std::string &agent, const std::string &message) const
{
    hte_segment_t segment;

    if (!find(agent, segment)) {
        return NIXL_ERR_NOT_FOUND;
    }
    return hte_nixl_told(
        hte_notify_send(engine_, segment, hte_text_of(localAgent).c_str(), hte_text_of(message).c_str()),
        ("notification to " + agent).c_str());
}
