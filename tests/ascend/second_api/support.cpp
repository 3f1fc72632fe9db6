#include "kernel_operator.h"
extern "C" void asc_kind(int cube, int vector, int schedules)
{
    asc_host::kindOfNextLaunch = {cube != 0, vector != 0, schedules != 0};
}
extern "C" const char *asc_problem() { return asc_host::lastProblem.c_str(); }
extern "C" const char *asc_calls()
{
    static std::string text;
    text.clear();
    for (auto &[name, n] : asc_host::allCalls) {
        text += name + " " + std::to_string(n) + "\n";
    }
    return text.c_str();
}
