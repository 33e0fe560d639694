/* The chain for all sizes in a certificate. */
#ifndef CLI_REPORT_CERTIFICATE_SIZES_H
#define CLI_REPORT_CERTIFICATE_SIZES_H

#include <jansson.h>

#include "synth/synth.h"

/* An argument as a certificate has it; sizes as {"size": "2*T"}. NULL: there is no memory. */
json_t *certificate_argument(const rule_term *t);
/* The certificate's "sizes". NULL: there is no memory. */
json_t *certificate_sizes(const synth_result *r);

#endif
