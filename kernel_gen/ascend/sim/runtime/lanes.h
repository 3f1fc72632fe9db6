// Which bytes the lanes of a vector instruction are, and its price.
#pragma once

#include <vector>

#include "core.h"

namespace gafsim
{

constexpr uint32_t kBlockBytes = 32;
constexpr uint32_t kRepeatBytes = 256;

// A stretch of lanes that is contiguous in every operand: offsets in bytes from each start.
struct Run {
    uint64_t dst = 0;
    uint64_t src[3] = {0, 0, 0};
    uint64_t lanes = 0;
};

// The lanes of an elementwise instruction as runs, in order. `widest` is the size in bytes of its
// largest element, which decides how many lanes a repeat has.
std::vector<Run> RunsOf(const Vector &v, uint32_t widest);

// Repeats and mask within what the instruction can hold; false where refused.
bool ValidLanes(const Vector &v, uint32_t widest, Where where);

// Repeats of 256 B that the instruction takes.
double RepeatsOf(const Vector &v, uint32_t widest);

// Cycles that conflicts between UB banks cost.
double BankConflicts(const Vector &v, double repeats);

// Checks each operand's runs and enters them into the shadows. False: refused.
bool Touches(Instruction &instruction, const Vector &v, const std::vector<Run> &runs);

// One operand's whole range [at, at + bytes): checked, and read or written.
bool Reads(Instruction &instruction, const Operand &operand, uint64_t at, uint64_t bytes,
           uint64_t align = kBlockBytes);
bool Writes(Instruction &instruction, const Operand &operand, uint64_t at, uint64_t bytes,
            uint64_t align = kBlockBytes);

// One lane of half or float as a number, and back (rounded to nearest even).
float LoadLane(Type type, const uint8_t *at);
void StoreLane(Type type, uint8_t *at, float value);

// Enters the instruction into the vector pipe.
void Price(Instruction &instruction, const Vector &v, uint32_t widest);

}  // namespace gafsim
