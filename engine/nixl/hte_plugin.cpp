/* SPDX-License-Identifier: BSD-3-Clause */
/* What NIXL looks for in libplugin_HTE.so. */
#include "backend/backend_plugin.h"
#include "hte_backend.hpp"

#include <memory>

namespace
{

nixlBackendEngine *create(const nixlBackendInitParams *params)
{
    auto backend = std::make_unique<HteBackend>(params);

    return backend->getInitErr() ? nullptr : backend.release();
}

void destroy(nixlBackendEngine *backend)
{
    delete backend;
}

const char *name()
{
    return "HTE";
}

} // namespace

extern "C" NIXL_PLUGIN_EXPORT nixlBackendPlugin *nixl_plugin_init()
{
    static nixlBackendPlugin plugin = {NIXL_PLUGIN_API_VERSION, create, destroy, name, hte_version, HteBackend::options,
                                       HteBackend::memories};

    return &plugin;
}

extern "C" NIXL_PLUGIN_EXPORT void nixl_plugin_fini()
{
}
