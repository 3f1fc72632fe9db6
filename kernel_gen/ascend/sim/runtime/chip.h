// What one chip can hold and what its instructions cost, as handed over by the Python side.
#pragma once

#include <array>
#include <string>

#include "../include/ascendc/sim.h"

namespace gafsim
{

constexpr int kOps = static_cast<int>(Op::Count);

// Costs are cycles of the core's clock unless said otherwise.
struct Chip {
    std::array<double, kLocalMemories> capacity{};  // bytes, by Memory
    double cube_cores = 1, vector_cores = 1, mhz = 1000;
    double ub_reserved = 0;             // bytes at the end of UB that kernels may not use
    double vector_start = 0;            // before the first repeat of a vector instruction is done
    std::array<double, kOps> repeat{};  // per repeat of 256 B
    std::array<double, kOps> fixed{};   // on top, per instruction
    double bank_read_read = 0;          // per repeat, both sources in one bank group
    double bank_read_write = 0;         // per repeat, a source and the result in one bank
    double issue = 0;                   // scalar unit, per instruction handed to a pipe
    double scalar_read = 0, scalar_write = 0;  // per element of a local tensor
    double scalar_gm = 0;                      // per element of a global tensor
    double event = 0;                          // from setting an event to the waiting pipe's start
    double core_flag = 0;                      // the same between cores
    double sync_all = 0;
    double hbm = 0, l2 = 0;                  // bytes per cycle of all cores together
    double read_start = 0, write_start = 0;  // GM copies, until the first byte has arrived
    double read_rate = 0, write_rate = 0;    // bytes per cycle of one vector core
    double cube_rate = 0;                    // bytes per cycle of one cube core
    double burst = 0;                        // bytes of bandwidth that each burst costs on top
    double sector = 32;                      // bytes; bursts move whole sectors
    double copy_issue = 0;                   // per copy instruction, in its pipe
    double ub_rate = 0, ub_start = 0;        // UB to UB
    double l0a_rate = 0, l0a_start = 0, l0b_rate = 0, l0b_start = 0;  // L1 to L0
    double bt_rate = 0, bt_start = 0;  // L1 to the bias table, source bytes
    double fix_rate = 0, fix_start = 0;  // elements per cycle out of L0C
    double mmad_start = 0;
    double block_start = 0;  // per block, before its first instruction
};

// Parses "name value" lines. Returns the empty string, or what is wrong with them.
std::string ParseChip(const std::string &text, Chip &chip);

const char *NameOf(Op op);

}  // namespace gafsim
