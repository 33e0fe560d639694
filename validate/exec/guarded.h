/* Private to shim.cc: what libtorch throws becomes an error with a code. */
#ifndef VALIDATE_EXEC_GUARDED_H
#define VALIDATE_EXEC_GUARDED_H

#include <c10/util/Exception.h>

#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <system_error>

#include "rules/rules.h"
#include "validate/exec/device.h"

namespace {

/* An error of a conversion or a result, with the code the caller sees. */
struct Failure {
  iso_code code;
  std::string text;
};

[[noreturn]] void stop(iso_code code, const std::string &text) { throw Failure{code, text}; }

/* The first line of `text`, behind the operator's name. */
iso_code fail(iso_error *err, iso_code code, const std::string &who, const std::string &text) {
  if (err) {
    std::string first = text.substr(0, text.find('\n'));
    err->code = code;
    std::snprintf(err->msg, sizeof err->msg, "%s: %s", who.c_str(), first.c_str());
  }
  return code;
}

/* Whether an error says that there is no memory: that tells nothing of the operator. */
bool lacks_memory(const char *text) {
  for (const char *sign : {"can't allocate memory", "not enough memory", "out of memory"})
    if (std::strstr(text, sign) != nullptr) return true;
  return false;
}

/* Runs `f`, which returns an iso_code, with every exception turned into an error. */
template <typename F> iso_code guarded(iso_error *err, const std::string &who, F f) {
  try {
    return f();
  } catch (const Failure &e) {
    return fail(err, e.code, who, e.text);
  } catch (const device::Failed &e) {
    return fail(err, ISO_DEVICE, who, e.text);
  } catch (const c10::NotImplementedError &e) {
    return fail(err, ISO_UNSUPPORTED, who, e.what_without_backtrace());
  } catch (const c10::Error &e) {
    const bool memory = lacks_memory(e.what_without_backtrace());
    return fail(err, memory ? ISO_NOMEM : ISO_TORCH, who,
                memory ? "out of memory" : e.what_without_backtrace());
  } catch (const std::bad_alloc &) {
    return fail(err, ISO_NOMEM, who, "out of memory");
  } catch (const std::system_error &e) { /* no thread can be started */
    return fail(err, ISO_NOMEM, who, e.what());
  } catch (const std::exception &e) {
    return fail(err, lacks_memory(e.what()) ? ISO_NOMEM : ISO_TORCH, who, e.what());
  } catch (...) {
    return fail(err, ISO_TORCH, who, "unknown exception");
  }
}

} // namespace

#endif
