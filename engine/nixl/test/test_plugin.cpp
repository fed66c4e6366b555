/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libplugin_HTE.so, driven as NIXL's agent drives a backend: two processes, each with one. test_plugin PLUGIN; last
 * line 'N passed, N failed'. The target obeys single characters of a pipe: 'n' what notifications came, 'q' the end.
 */
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/backend_plugin.h"

namespace
{

constexpr size_t MIB = 1 << 20, SIZE = 64 * MIB;

int                passed, failed;
nixlBackendPlugin *plugin;
int                to_target, from_target;
pid_t              target;

void expect(bool good, const std::string &what)
{
    ++(good ? passed : failed);
    printf("%s %s\n", good ? "ok  " : "FAIL", what.c_str());
}

using Backend = std::unique_ptr<nixlBackendEngine, void (*)(nixlBackendEngine *)>;

Backend create(const char *agent)
{
    static nixl_b_params_t none;
    nixlBackendInitParams  params;

    params.localAgent   = agent;
    params.type         = "HTE";
    params.customParams = &none;
    return {plugin->create_engine(&params), plugin->destroy_engine};
}

nixlBackendMD *add(nixlBackendEngine &backend, void *addr, size_t length)
{
    nixlBackendMD *region = nullptr;
    nixlBlobDesc   memory(reinterpret_cast<uintptr_t>(addr), length, 0, "");

    return backend.registerMem(memory, DRAM_SEG, region) == NIXL_SUCCESS ? region : nullptr;
}

void put(int fd, const std::string &text)
{
    const uint32_t length = static_cast<uint32_t>(text.size());

    if (write(fd, &length, sizeof(length)) < 0 || write(fd, text.data(), length) < 0) {
        _exit(3);
    }
}

std::string get(int fd)
{
    uint32_t    length;
    std::string text;

    if (read(fd, &length, sizeof(length)) != sizeof(length)) {
        return "";
    }
    text.resize(length);
    for (size_t at = 0; at < length;) {
        const ssize_t n = read(fd, &text[at], length - at);

        if (n <= 0) {
            return "";
        }
        at += static_cast<size_t>(n);
    }
    return text;
}

/* ---- the target ---- */

[[noreturn]] void serve(int in, int out)
{
    Backend           backend = create("two");
    std::vector<char> memory(SIZE);
    std::string       info;
    char              command;

    if (!backend || add(*backend, memory.data(), SIZE) == nullptr || backend->getConnInfo(info) != NIXL_SUCCESS) {
        _exit(2);
    }
    put(out, info);
    put(out, std::to_string(reinterpret_cast<uintptr_t>(memory.data())));
    while (read(in, &command, 1) == 1 && command == 'n') {
        notif_list_t arrived;
        std::string  all;

        backend->getNotifs(arrived);
        for (const auto &[agent, text] : arrived) {
            all += agent + "=" + text + ";";
        }
        put(out, all);
    }
    _exit(0);
}

/* Those that have come when nothing has come for a moment. */
std::string notifications(const std::string &wanted)
{
    std::string all;

    for (int i = 0; i < 200 && all != wanted; ++i) {
        if (write(to_target, "n", 1) != 1) {
            break;
        }
        all += get(from_target);
        usleep(20000);
    }
    return all;
}

/* ---- transfers ---- */

struct Shape {
    size_t count, length, stride; /* at the target */
};

nixl_meta_dlist_t list(uintptr_t addr, const Shape &shape, size_t stride)
{
    nixl_meta_dlist_t descs(DRAM_SEG);

    for (size_t i = 0; i < shape.count; ++i) {
        descs.emplace(addr + i * stride, shape.length, 0ul, nullptr);
    }
    return descs;
}

nixl_status_t finish(nixlBackendEngine &backend, nixlBackendReqH *handle, nixl_status_t status, int seconds = 30)
{
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);

    while (status == NIXL_IN_PROG && std::chrono::steady_clock::now() < until) {
        usleep(100);
        status = backend.checkXfer(handle);
    }
    return status;
}

nixl_status_t transfer(nixlBackendEngine &backend, nixl_xfer_op_t operation, const nixl_meta_dlist_t &local,
                       const nixl_meta_dlist_t &remote, const std::string &agent, const std::string *notification)
{
    nixl_opt_b_args_t args;
    nixlBackendReqH  *handle = nullptr;
    nixl_status_t     status = backend.prepXfer(operation, local, remote, agent, handle, &args);

    if (status != NIXL_SUCCESS) {
        return status;
    }
    args.hasNotif = notification != nullptr;
    args.notifMsg = notification != nullptr ? *notification : "";
    status        = finish(backend, handle, backend.postXfer(operation, local, remote, agent, handle, &args));
    return backend.releaseReqH(handle) == NIXL_SUCCESS ? status : NIXL_ERR_UNKNOWN;
}

struct Side {
    nixlBackendEngine &backend;
    char              *out, *in; /* SIZE bytes each */
    uintptr_t          remote;
};

/* There and back: every byte is compared, and the notification with it. */
void round_trip(const Side &side, const Shape &shape, const char *what)
{
    const std::string text(what);
    const size_t      bytes = shape.count * shape.length;

    for (size_t i = 0; i < bytes; ++i) {
        side.out[i] = static_cast<char>(i * 7 + i / 4096 + shape.count);
    }
    memset(side.in, 0, bytes);
    const auto out = list(reinterpret_cast<uintptr_t>(side.out), shape, shape.length);
    const auto in  = list(reinterpret_cast<uintptr_t>(side.in), shape, shape.length);
    const auto far = list(side.remote, shape, shape.stride);

    expect(transfer(side.backend, NIXL_WRITE, out, far, "two", &text) == NIXL_SUCCESS, text + ": WRITE");
    expect(transfer(side.backend, NIXL_READ, in, far, "two", nullptr) == NIXL_SUCCESS, text + ": READ");
    expect(memcmp(side.in, side.out, bytes) == 0, text + ": every byte");
    expect(notifications("one=" + text + ";") == "one=" + text + ";", text + ": its notification");
}

void post_often(const Side &side)
{
    const Shape       shape  = {2, 4096, 8192};
    const auto        out    = list(reinterpret_cast<uintptr_t>(side.out), shape, 4096);
    const auto        far    = list(side.remote, shape, shape.stride);
    nixlBackendReqH  *handle = nullptr;
    nixl_opt_b_args_t args;
    std::string       wanted;
    int               good = 0;

    expect(side.backend.prepXfer(NIXL_WRITE, out, far, "two", handle, &args) == NIXL_SUCCESS, "prepared once");
    for (int i = 0; i < 100; ++i) {
        args.hasNotif = true;
        args.notifMsg = std::to_string(i);
        wanted += "one=" + args.notifMsg + ";";
        good += finish(side.backend, handle, side.backend.postXfer(NIXL_WRITE, out, far, "two", handle, &args)) ==
                NIXL_SUCCESS;
    }
    args.hasNotif = false;
    for (int i = 0; i < 100; ++i) {
        good += finish(side.backend, handle, side.backend.postXfer(NIXL_WRITE, out, far, "two", handle, &args)) ==
                NIXL_SUCCESS;
    }
    expect(good == 200, "posted 200 times");
    expect(notifications(wanted) == wanted, "100 notifications, in order");
    expect(side.backend.releaseReqH(handle) == NIXL_SUCCESS, "and released");
}

void release_early(const Side &side, nixlBackendMD *region)
{
    const Shape       shape  = {64, MIB, MIB};
    const auto        out    = list(reinterpret_cast<uintptr_t>(side.out), shape, MIB);
    const auto        far    = list(side.remote, shape, MIB);
    nixlBackendReqH  *handle = nullptr;
    nixl_opt_b_args_t args;

    side.backend.prepXfer(NIXL_WRITE, out, far, "two", handle, &args);
    const nixl_status_t status = side.backend.postXfer(NIXL_WRITE, out, far, "two", handle, &args);

    expect(status == NIXL_IN_PROG || status == NIXL_SUCCESS, "64 MiB under way");
    expect(status != NIXL_IN_PROG || side.backend.deregisterMem(region) == NIXL_ERR_NOT_ALLOWED ||
               side.backend.checkXfer(handle) == NIXL_SUCCESS,
           "its memory is not given back");
    expect(side.backend.releaseReqH(handle) == NIXL_SUCCESS, "released in the middle");
    expect(side.backend.deregisterMem(region) == NIXL_SUCCESS, "then it is");
}

void wrong_input(const Side &side)
{
    const auto        one    = list(reinterpret_cast<uintptr_t>(side.out), {1, 4096, 4096}, 4096);
    const auto        two    = list(side.remote, {2, 4096, 4096}, 4096);
    const auto        none   = list(side.remote + SIZE + (1ul << 40), {1, 4096, 4096}, 4096);
    nixlBackendReqH  *handle = nullptr;
    nixl_opt_b_args_t args;
    nixlBackendMD    *region = nullptr;
    nixlBlobDesc      gpu(reinterpret_cast<uintptr_t>(side.out), 4096, 0, "");

    expect(side.backend.prepXfer(NIXL_READ, one, two, "two", handle, &args) == NIXL_ERR_MISMATCH, "lists that differ");
    expect(side.backend.prepXfer(NIXL_READ, one, one, "six", handle, &args) == NIXL_ERR_NOT_FOUND, "unknown agent");
    expect(side.backend.prepXfer(NIXL_READ, one, none, "two", handle, &args) == NIXL_ERR_NOT_FOUND, "no such memory");
    expect(side.backend.registerMem(gpu, BLK_SEG, region) == NIXL_ERR_NOT_SUPPORTED,
           "a kind of memory that it has not");
    expect(side.backend.loadRemoteConnInfo("six", "nonsense") != NIXL_SUCCESS, "no name of an engine");
}

void query(const Side &side)
{
    nixl_reg_dlist_t               memories(DRAM_SEG);
    std::vector<nixl_query_resp_t> answers;

    memories.emplace(reinterpret_cast<uintptr_t>(side.in) + 4096, 4096ul, 0ul, "");
    memories.emplace(reinterpret_cast<uintptr_t>(side.in) + SIZE - 1, 4096ul, 0ul, "");
    expect(side.backend.queryMem(memories, answers) == NIXL_SUCCESS && answers.size() == 2 && answers[0].has_value() &&
               !answers[1].has_value(),
           "what is registered");
}

void killed(const Side &side)
{
    const Shape       shape  = {64, MIB, MIB};
    const auto        in     = list(reinterpret_cast<uintptr_t>(side.in), shape, MIB);
    const auto        far    = list(side.remote, shape, MIB);
    nixlBackendReqH  *handle = nullptr;
    nixl_opt_b_args_t args;
    nixl_status_t     status = NIXL_SUCCESS;
    const auto        start  = std::chrono::steady_clock::now();

    side.backend.prepXfer(NIXL_READ, in, far, "two", handle, &args);
    kill(target, SIGKILL);
    waitpid(target, nullptr, 0);
    for (int i = 0; i < 1000 && status == NIXL_SUCCESS; ++i) {
        status = finish(side.backend, handle, side.backend.postXfer(NIXL_READ, in, far, "two", handle, &args), 60);
    }
    printf("     after %.1f s: %d\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
           status);
    expect(status == NIXL_ERR_REMOTE_DISCONNECT, "the target was killed: it says so");
    expect(side.backend.releaseReqH(handle) == NIXL_SUCCESS, "and what is left is released");
}

void run(nixlBackendEngine &backend)
{
    std::vector<char> out(SIZE), in(SIZE);
    const std::string bytes("\0\xff%41 \xc3\xa4;", 9);
    const std::string info   = get(from_target);
    const Side        side   = {backend, out.data(), in.data(), std::stoul(get(from_target))};
    nixlBackendMD    *of_out = add(backend, out.data(), SIZE), *of_in = add(backend, in.data(), SIZE);

    expect(of_out != nullptr && of_in != nullptr, "memory");
    expect(add(backend, out.data(), 4096) == of_out && backend.deregisterMem(of_out) == NIXL_SUCCESS,
           "registered twice, once given back");
    expect(backend.loadRemoteConnInfo("two", info) == NIXL_SUCCESS, "connection info: " + info);
    expect(backend.connect("two") == NIXL_SUCCESS, "connected");
    round_trip(side, {64, MIB, MIB}, "64 of 1 MiB");
    round_trip(side, {1000, 4096, 8192}, "1000 of 4 KiB apart");
    post_often(side);
    expect(backend.genNotif("two", bytes) == NIXL_SUCCESS &&
               notifications("one=" + bytes + ";") == "one=" + bytes + ";",
           "a notification of any bytes");
    expect(transfer(backend, NIXL_WRITE, list(reinterpret_cast<uintptr_t>(out.data()), {1, MIB, MIB}, MIB),
                    list(reinterpret_cast<uintptr_t>(in.data()), {1, MIB, MIB}, MIB), "one", nullptr) == NIXL_SUCCESS &&
               memcmp(out.data(), in.data(), MIB) == 0,
           "to its own memory");
    wrong_input(side);
    query(side);
    release_early(side, of_out);
    killed(side);
    expect(backend.deregisterMem(of_in) == NIXL_SUCCESS, "memory given back");
    expect(backend.disconnect("two") == NIXL_SUCCESS, "disconnected");
}

} // namespace

int main(int argc, char **argv)
{
    int   in[2], out[2];
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
    auto  init    = library == nullptr ? nullptr
                                       : reinterpret_cast<nixlBackendPlugin *(*)()>(dlsym(library, "nixl_plugin_init"));

    if (init == nullptr || pipe(in) != 0 || pipe(out) != 0) {
        fprintf(stderr, "test_plugin PLUGIN: %s\n", argc == 2 ? dlerror() : "which one?");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    plugin = init();
    expect(plugin->api_version == NIXL_PLUGIN_API_VERSION && std::string(plugin->get_plugin_name()) == "HTE", "HTE");
    fflush(stdout);
    target = fork(); /* before anything of UCX */
    if (target == 0) {
        serve(in[0], out[1]);
    }
    to_target   = in[1];
    from_target = out[0];
    close(out[1]);
    {
        Backend backend = create("one");

        expect(backend != nullptr, "a backend");
        if (backend != nullptr) {
            run(*backend);
        }
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
