#pragma once
#include <stdint.h>
typedef void *aclrtStream;
