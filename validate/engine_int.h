/* Private to validate/: what the ladder reads of the engine. */
#ifndef VALIDATE_ENGINE_INT_H
#define VALIDATE_ENGINE_INT_H

#include "validate/validate.h"

const val_options *val_engine_options(const val_engine *e);
rule_schemas *val_engine_schemas(val_engine *e);

#endif
