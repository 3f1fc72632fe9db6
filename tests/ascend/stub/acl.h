// The few types of acl/acl.h that a launcher names.
#pragma once
#include <stdint.h>
typedef void *aclrtStream;
