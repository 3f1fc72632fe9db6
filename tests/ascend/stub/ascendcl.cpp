// A libascendcl.so for tests: device memory is host memory, streams run at once, and kernels run on
// the simulator's host build. Its times say nothing. STUB_CHIP is the path of the chip's parameters.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

extern "C" {

struct GafSimBuffer {
    void *data;
    uint64_t bytes;
    int role;
};
const char *gafsim_run(void *, const GafSimBuffer *, int, int64_t, const char *, int);

}

namespace
{

constexpr int kOk = 0, kInvalidParam = 100000, kRepeated = 100002, kAiCoreException = 507015;
constexpr size_t kAlignment = 512;
constexpr int kInput = 0, kWorkspace = 2, kCheck = 1;

std::map<uintptr_t, size_t> allocated;
bool initialised = false;
int fault = kOk;

const std::string &Chip()
{
    static const std::string text = [] {
        std::ifstream file(STUB_CHIP);
        return std::string(std::istreambuf_iterator<char>(file), {});
    }();
    return text;
}

// From an address in device memory to the end of its allocation; no bytes for any other address.
GafSimBuffer Reach(void *data, int role)
{
    const auto address = reinterpret_cast<uintptr_t>(data);
    auto after = allocated.upper_bound(address);
    if (after == allocated.begin()) {
        return {data, 0, role};
    }
    const auto &[start, size] = *--after;
    return {data, address < start + size ? start + size - address : 0, role};
}

bool Inside(const void *data, size_t bytes)
{
    return Reach(const_cast<void *>(data), kInput).bytes >= bytes;
}

double Now()
{
    using namespace std::chrono;
    return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace

extern "C" {

int aclInit(const char *)
{
    return std::exchange(initialised, true) ? kRepeated : kOk;
}
int aclrtGetDeviceCount(uint32_t *count)
{
    *count = 2;
    return kOk;
}
int aclrtSetDevice(int32_t device)
{
    return initialised && device >= 0 && device < 2 ? kOk : kInvalidParam;
}
const char *aclrtGetSocName()
{
    return "Ascend910B3";
}
const char *aclGetRecentErrMsg()
{
    return fault == kOk ? nullptr : "the stub's kernel reached a trap";
}

int aclrtMalloc(void **made, size_t bytes, int)
{
    const size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    *made = std::aligned_alloc(kAlignment, whole);
    std::memset(*made, 0xee, whole);
    allocated[reinterpret_cast<uintptr_t>(*made)] = bytes;
    return kOk;
}
int aclrtFree(void *data)
{
    if (allocated.erase(reinterpret_cast<uintptr_t>(data)) == 0) {
        return kInvalidParam;
    }
    std::free(data);
    return kOk;
}
int aclrtMemcpy(void *to, size_t room, const void *from, size_t bytes, int kind)
{
    const void *on_device = kind == 1 ? to : from;
    if (bytes > room || !Inside(on_device, bytes)) {
        return kInvalidParam;
    }
    std::memcpy(to, from, bytes);
    return kOk;
}
int aclrtMemset(void *to, size_t room, int32_t value, size_t bytes)
{
    if (bytes > room || !Inside(to, bytes)) {
        return kInvalidParam;
    }
    std::memset(to, value, bytes);
    return kOk;
}

int aclrtCreateStream(void **made)
{
    static int stream;
    *made = &stream;
    return kOk;
}
int aclrtSynchronizeStream(void *)
{
    return fault;
}
int aclrtCreateEvent(void **made)
{
    *made = new double(0);
    return kOk;
}
int aclrtRecordEvent(void *event, void *)
{
    *static_cast<double *>(event) = Now();
    return kOk;
}
int aclrtEventElapsedTime(float *milliseconds, void *before, void *after)
{
    const double took = *static_cast<double *>(after) - *static_cast<double *>(before);
    *milliseconds = static_cast<float>(took);
    return kOk;
}

// What the stub's compiler makes of kernel<<<blocks, nullptr, stream>>>(…). The last argument is the
// tiling data. A core that does not come to its end is an exception of the AI core.
void stub_launch(void *kernel, void *const *arguments, int count, uint32_t blocks)
{
    std::vector<GafSimBuffer> buffers;
    for (int i = 0; i < count; ++i) {
        buffers.push_back(Reach(arguments[i], i + 1 == count ? kInput : kWorkspace));
    }
    const char *report = gafsim_run(kernel, buffers.data(), count, blocks, Chip().c_str(), kCheck);
    if (std::strstr(report, "\"code\":\"gm-out-of-bounds\"") != nullptr) {
        fault = kAiCoreException;
    }
}
}
