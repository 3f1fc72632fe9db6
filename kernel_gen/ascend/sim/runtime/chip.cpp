#include "chip.h"

#include <sstream>
#include <unordered_map>

namespace gafsim
{

namespace
{

const char *const kNames[] = {
#define GAFSIM_NAME(name) #name,
    GAFSIM_OPS(GAFSIM_NAME)
#undef GAFSIM_NAME
};

std::unordered_map<std::string, double *> FieldsOf(Chip &chip)
{
    std::unordered_map<std::string, double *> fields = {
        {"cube_cores", &chip.cube_cores},
        {"vector_cores", &chip.vector_cores},
        {"mhz", &chip.mhz},
        {"ub_reserved", &chip.ub_reserved},
        {"vector_start", &chip.vector_start},
        {"bank_read_read", &chip.bank_read_read},
        {"bank_read_write", &chip.bank_read_write},
        {"issue", &chip.issue},
        {"scalar_read", &chip.scalar_read},
        {"scalar_write", &chip.scalar_write},
        {"scalar_gm", &chip.scalar_gm},
        {"event", &chip.event},
        {"core_flag", &chip.core_flag},
        {"sync_all", &chip.sync_all},
        {"hbm", &chip.hbm},
        {"l2", &chip.l2},
        {"read_start", &chip.read_start},
        {"write_start", &chip.write_start},
        {"read_rate", &chip.read_rate},
        {"write_rate", &chip.write_rate},
        {"cube_rate", &chip.cube_rate},
        {"burst", &chip.burst},
        {"sector", &chip.sector},
        {"copy_issue", &chip.copy_issue},
        {"ub_rate", &chip.ub_rate},
        {"ub_start", &chip.ub_start},
        {"l0a_rate", &chip.l0a_rate},
        {"l0a_start", &chip.l0a_start},
        {"l0b_rate", &chip.l0b_rate},
        {"l0b_start", &chip.l0b_start},
        {"bt_rate", &chip.bt_rate},
        {"bt_start", &chip.bt_start},
        {"fix_rate", &chip.fix_rate},
        {"fix_start", &chip.fix_start},
        {"mmad_start", &chip.mmad_start},
        {"block_start", &chip.block_start},
    };
    const char *memories[kLocalMemories] = {"ub", "l1", "l0a", "l0b", "l0c", "bt", "fb"};
    for (int i = 0; i < kLocalMemories; ++i) {
        fields[std::string("capacity.") + memories[i]] = &chip.capacity[i];
    }
    for (int i = 0; i < kOps; ++i) {
        fields[std::string("repeat.") + kNames[i]] = &chip.repeat[i];
        fields[std::string("fixed.") + kNames[i]] = &chip.fixed[i];
    }
    return fields;
}

}  // namespace

const char *NameOf(Op op)
{
    return kNames[static_cast<int>(op)];
}

std::string ParseChip(const std::string &text, Chip &chip)
{
    const auto fields = FieldsOf(chip);
    std::istringstream lines(text);
    std::string name;
    double value = 0;
    while (lines >> name >> value) {
        const auto found = fields.find(name);
        if (found == fields.end()) {
            return "unknown chip parameter " + name;
        }
        *found->second = value;
    }
    return lines.eof() ? "" : "chip parameter without a number after " + name;
}

}  // namespace gafsim
